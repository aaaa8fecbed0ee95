import { randomBytes } from 'node:crypto';

/** `whsec_` and base64 of 24 to 64 bytes, written in the one way there is for them. */
export const WEBHOOK_SECRET_PATTERN =
  '^whsec_(?:(?:[A-Za-z0-9+/]{4}){8,21}(?:[A-Za-z0-9+/][AQgw]==)?|(?:[A-Za-z0-9+/]{4}){8,20}[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$';

/** 256 random bits. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}
