import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { builtProgram } from '../support/built-program.js';

const ROOT = join(import.meta.dirname, '..', '..');
