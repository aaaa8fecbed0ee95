import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { validate } from 'dockerfile-utils';
import { loadEnv } from '../../src/config/env.js';
import { ROOT } from '../architecture/source-files.js';
import { startApp, type RunningApp } from '../support/app.js';
import { describeEngine } from '../support/engines.js';
import { DOCKERFILE, imageSettings, STAGES, textOf } from './image.js';
import { MANIFEST, SOURCES } from './package-copy.js';
import { run } from './trial.js';

const [build, runtime] = STAGES;
const words = (text: string) => text.split(/\s+/);

describe('IMAGE: the Dockerfile', () => {
  it('has nothing that its linter would complain of', () => {
    expect(validate(DOCKERFILE).map(({ message }) => message)).toEqual([]);
  });

  it('stands on one exact version of Node.js in both stages, which the package accepts', () => {
    const [, version = ''] = /^ARG NODE_IMAGE=node:(20\.\d+\.\d+)-\w+-slim\n/.exec(DOCKERFILE) ?? [];
    const [, minor] = version.split('.').map(Number);
    const [, needed] = /^>=20\.(\d+)\.0$/.exec(MANIFEST.engines.node) ?? [];
    expect(minor).toBeGreaterThanOrEqual(Number(needed));
    expect(STAGES.map((stage) => textOf(stage, 'FROM'))).toEqual(['${NODE_IMAGE} AS build', '${NODE_IMAGE}']);
  });

  it('copies what there is, and lets nothing into its build but that', () => {
    const copied = build?.filter(({ name }) => name === 'COPY').flatMap(({ text }) => words(text).slice(0, -1));
    expect(copied).toEqual(['package.json', 'package-lock.json', '.npmrc', '.']);
    expect(SOURCES).toEqual(expect.arrayContaining(['package.json', 'package-lock.json', '.npmrc', 'src']));
    expect([...SOURCES, ...(copied ?? [])].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(SOURCES.filter((path) => /^(\.env|\.git|test|data|dist|node_modules)$/.test(path))).toEqual([]);
  });

  it('takes over the package with its dependencies alone', () => {
    const [, packing] = build?.filter(({ text }) => /^npm /.test(text)) ?? [];
    expect(packing?.text).toMatch(/^npm pack .* npm prune --omit=dev --omit=optional .*mv node_modules \/app\/$/);
    expect(runtime?.filter(({ name }) => name === 'COPY' || name === 'ADD')).toEqual([
      { name: 'COPY', text: '/app ./' },
    ]);
  });

  it('runs as a user of its own, to whom the folder of the data belongs and nothing else', () => {
    const [, user] = /^(\d+):\1$/.exec(textOf(runtime, 'USER')) ?? [];
    expect(Number(user)).toBeGreaterThan(999);
    const folder = /^sqlite:(.*)\/[^/]+$/.exec(imageSettings()['DATABASE_URL'] ?? '')?.[1];
    expect(JSON.parse(textOf(runtime, 'VOLUME'))).toEqual([folder]);
    const made = textOf(runtime, 'RUN');
    expect(made).toContain(`useradd --uid ${user} --gid clarion `);
    expect(made).toContain(`install -d -o clarion -g clarion -m 0700 ${folder}`);
    const order = runtime?.map(({ name }) => name) ?? [];
    expect(order.indexOf('USER')).toBeGreaterThan(order.lastIndexOf('COPY'));
  });

  it('LOOPBACK: starts with the settings it brings, reachable from outside and with tokens only', () => {
    const env = loadEnv(imageSettings());
    expect(env).toMatchObject({ host: '0.0.0.0', authMode: 'enforced', openMetricsAndDocs: false });
    expect(textOf(runtime, 'EXPOSE')).toBe(String(env.port));
  });

  it('SHUTDOWN: starts the package’s command without a shell, and stops it by the signal that it knows', () => {
    expect(JSON.parse(textOf(runtime, 'ENTRYPOINT'))).toEqual(['node', `/app/${MANIFEST.bin['clarion']}`]);
    expect(JSON.parse(textOf(runtime, 'CMD'))).toEqual([]);
    expect(textOf(runtime, 'STOPSIGNAL')).toBe('SIGTERM');
    expect(textOf(runtime, 'WORKDIR')).toBe('/app');
  });
});

describeEngine('sqlite', 'IMAGE: the health check', (engine) => {
  let app: RunningApp;
  let port: string;

  beforeAll(async () => {
    app = await startApp({ url: await engine.createUrl() });
    port = new URL(app.url).port;
  });
  afterAll(() => app.close());

  const [, command = ''] = /^CMD (.*)$/.exec(textOf(runtime, 'HEALTHCHECK')) ?? [];
  const [program, ...args] = JSON.parse(command) as string[];
  const check = (PORT: string) => run(process.execPath, args, { env: { PORT } });

  it('HEALTH: is content with a server that answers', async () => {
    expect(program).toBe('node');
    expect(await check(port)).toEqual({ stdout: '', stderr: '' });
  });

  it('HEALTH: is not content where nobody answers, or somebody else does', async () => {
    await expect(check('1')).rejects.toMatchObject({ code: 1, stderr: '' });
    const away = args.map((each) => each.replace('/health/live', '/health/elsewhere'));
    await expect(run(process.execPath, away, { env: { PORT: port } })).rejects.toMatchObject({ code: 1, stderr: '' });
  });
});
