// node --import ./test/support/run-typescript.js FILE.ts — runs our sources in a real process of their own.
import { register } from 'node:module';

register('./typescript-hooks.js', import.meta.url);
