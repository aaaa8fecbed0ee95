import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/** Restricts imports, so that dependencies point inwards (ARCHITECTURE.md). */
const only = (files, patterns) => ({
  files,
  rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] },
});

const SQL = { group: ['typeorm', 'typeorm/*', 'pg', 'sqlite3'], message: 'SQL lives in persistence/ and migrations/.' };
const NEST = { group: ['@nestjs/*', 'express'], message: 'The domain is plain TypeScript.' };
const MCP_SDK = { group: ['@modelcontextprotocol/*'], message: 'Only the MCP adapter knows the SDK.' };

export default tseslint.config(
  { ignores: ['dist/**', 'node_modules/**', 'coverage/**', 'data/**', 'bench/.cache/**', 'bench/results/**'] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ['*.js'] }, tsconfigRootDir: import.meta.dirname },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'no-console': 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: "MemberExpression[object.name='process'][property.name='env']",
          message: 'Only src/config/env.ts reads the environment.',
        },
      ],
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-extraneous-class': 'off',
      '@typescript-eslint/require-await': 'off',
    },
  },
  only(['src/common/**'], [SQL, NEST, MCP_SDK]),
  only(['src/**/domain/**'], [SQL, NEST, MCP_SDK, { group: ['**/persistence/**', '**/http/**', '**/mcp/**'] }]),
  only(['src/**/*.ts'], [MCP_SDK]),
  { files: ['src/mcp/sdk/**', 'src/demo/**'], rules: { '@typescript-eslint/no-restricted-imports': 'off' } },
  {
    files: ['src/config/env.ts', 'test/**', 'scripts/**', 'bench/**', '*.js'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  { files: ['src/cli/**', 'src/demo/**', 'scripts/**', 'bench/**'], rules: { 'no-console': 'off' } },
  { files: ['**/*.js'], ...tseslint.configs.disableTypeChecked },
  {
    files: ['test/**', 'bench/**'],
    rules: {
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
    },
  },
);
