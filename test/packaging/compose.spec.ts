import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { ENV_VARIABLES, loadEnv } from '../../src/config/env.js';
import { ROOT } from '../architecture/source-files.js';
import { imageSettings, STAGES, textOf } from './image.js';
import { MANIFEST } from './package-copy.js';
import { longestStop, seconds } from './stop-time.js';

interface Service {
  readonly image: string;
  readonly environment: Readonly<Record<string, string | number | null>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly [field: string]: unknown;
}

interface Compose {
  readonly services: Readonly<Record<'clarion' | 'postgres', Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

const text = readFileSync(join(ROOT, 'compose.yaml'), 'utf8');

/** As compose reads it with these variables set. @throws where one is missing that has to be set */
function compose(variables: Readonly<Record<string, string>>): Compose {
  const set = text.replace(/\$\{(\w+)(:[-?])([^}]*)\}/g, (_, name: string, kind: string, rest: string) => {
    const value = variables[name];
    if (value === undefined && kind === ':?') throw new Error(`${name} ${rest}`);
    return value ?? rest;
  });
  return parse(set) as Compose;
}

const given = compose({ POSTGRES_PASSWORD: 'a1b2c3' });
const { clarion, postgres } = given.services;
const settings = Object.fromEntries(
  Object.entries(clarion.environment).map(([name, value]) => [name, String(value ?? '')]),
);

describe('COMPOSE: compose.yaml', () => {
  it('has no password, and asks for one', () => {
    expect(() => compose({})).toThrow('POSTGRES_PASSWORD set it in .env');
    expect(settings['DATABASE_URL']).toBe('postgres://clarion:a1b2c3@postgres:5432/clarion');
    expect(postgres.environment).toEqual({
      POSTGRES_USER: 'clarion',
      POSTGRES_PASSWORD: 'a1b2c3',
      POSTGRES_DB: 'clarion',
    });
    expect([...text.matchAll(/password[^\n]*/gi)].filter(([line]) => /[:=]\s*\w{6,}$/i.test(line))).toEqual([]);
  });

  it('names only settings that exist, with values that can be used', () => {
    expect(Object.keys(settings).filter((name) => !ENV_VARIABLES.includes(name))).toEqual([]);
    const env = loadEnv({ ...imageSettings(), ...settings });
    expect(env).toMatchObject({ host: '0.0.0.0', authMode: 'enforced', allowedHosts: [], trustProxy: false });
    const behindProxy = compose({ POSTGRES_PASSWORD: 'x', ALLOWED_HOSTS: 'clarion.example.org', TRUST_PROXY: '1' });
    const { TRUST_PROXY, ALLOWED_HOSTS } = behindProxy.services.clarion.environment;
    expect(loadEnv({ TRUST_PROXY: String(TRUST_PROXY), ALLOWED_HOSTS: String(ALLOWED_HOSTS) })).toMatchObject({
      trustProxy: 1,
      allowedHosts: ['clarion.example.org'],
    });
  });

  it('publishes the image’s port to this machine alone, and the database’s to nobody', () => {
    expect(clarion.ports).toEqual([`127.0.0.1:3000:${imageSettings()['PORT']}`]);
    expect(postgres.ports).toBeUndefined();
  });

  it('starts the server of this version when the database answers, which keeps its rows in a volume', () => {
    expect(clarion.image).toBe(`clarion:${MANIFEST.version}`);
    expect(clarion['build']).toBe('.');
    expect(clarion.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
    expect(postgres.image).toMatch(/^postgres:\d+\.\d+-\w+$/);
    expect(postgres.healthcheck?.test.slice(0, 2)).toEqual(['CMD', 'pg_isready']);
    expect(postgres.volumes).toEqual(['postgres:/var/lib/postgresql']);
    expect(Object.keys(given.volumes)).toEqual(['postgres']);
  });

  it('SHUTDOWN: gives the server the time that it may take to stop', () => {
    expect(seconds(clarion['stop_grace_period'])).toBeGreaterThan(longestStop(settings));
  });

  it('leaves the server nothing to write to but memory and the image’s volume, and no privilege', () => {
    expect(clarion).toMatchObject({
      read_only: true,
      tmpfs: ['/tmp'],
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    expect(clarion['user']).toBeUndefined();
    expect(textOf(STAGES.at(-1), 'USER')).not.toMatch(/^(0|root)\b/);
  });
});
