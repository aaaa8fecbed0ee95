/** The version in package.json, which a built copy does not carry along. */
export const VERSION = '0.1.0';
