import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { ENV_VARIABLES, loadEnv } from '../../src/config/env.js';
import { ROOT } from '../architecture/source-files.js';
import { MANIFEST } from './package-copy.js';
import { longestStop, seconds } from './stop-time.js';

type Section = ReadonlyMap<string, readonly string[]>;

/** A unit file's sections; a directive that stands several times has several values. */
function unitFrom(text: string): ReadonlyMap<string, Section> {
  const sections = new Map<string, Map<string, string[]>>();
  let current: Map<string, string[]> | undefined;
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [, section] = /^\[(\w+)\]$/.exec(line) ?? [];
    const [, name, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (section !== undefined) sections.set(section, (current = new Map()));
    else if (name !== undefined && current !== undefined) current.set(name, [...(current.get(name) ?? []), value]);
    else throw new Error(`no line of a unit file: ${line}`);
  }
  return sections;
}

const unit = unitFrom(readFileSync(join(ROOT, 'packaging/clarion.service'), 'utf8'));
const service = unit.get('Service') ?? new Map<string, string[]>();
const one = (name: string): string => {
  const values = service.get(name) ?? [];
  if (values.length !== 1) throw new Error(`${name} stands ${values.length} times`);
  return values[0] ?? '';
};
const settings = Object.fromEntries((service.get('Environment') ?? []).map((each) => each.split(/=(.*)/).slice(0, 2)));

describe('UNIT: packaging/clarion.service', () => {
  it('has the sections of a service that starts with the machine', () => {
    expect([...unit.keys()]).toEqual(['Unit', 'Service', 'Install']);
    expect(unit.get('Install')?.get('WantedBy')).toEqual(['multi-user.target']);
  });

  it('starts the package’s command itself, and again when it fails', () => {
    expect(one('Type')).toBe('exec');
    expect(one('ExecStart')).toBe('/opt/clarion/bin/clarion');
    expect(Object.keys(MANIFEST.bin)).toEqual(['clarion']);
    expect(one('Restart')).toBe('on-failure');
  });

  it('FILE-MODE: runs as a user of its own, in a folder that is that user’s alone', () => {
    expect([one('User'), one('Group'), one('UMask'), one('StateDirectoryMode')]).toEqual([
      'clarion',
      'clarion',
      '0077',
      '0700',
    ]);
    const folder = `/var/lib/${one('StateDirectory')}`;
    expect(one('WorkingDirectory')).toBe(folder);
    expect(settings['DATABASE_URL']).toBe(`sqlite:${folder}/clarion.db`);
  });

  it('names only settings that exist, demands tokens, and lets the operator’s file win', () => {
    const { NODE_ENV, ...ours } = settings;
    expect(NODE_ENV).toBe('production');
    expect(Object.keys(ours).filter((name) => !ENV_VARIABLES.includes(name))).toEqual([]);
    expect(loadEnv(ours)).toMatchObject({ host: '127.0.0.1', authMode: 'enforced' });
    const names = [...service.keys()];
    expect(names.indexOf('EnvironmentFile')).toBeGreaterThan(names.indexOf('Environment'));
    expect(one('EnvironmentFile')).toBe('-/etc/clarion.env');
  });

  it('SHUTDOWN: gives the server the time that it may take to stop', () => {
    expect(service.get('KillSignal') ?? ['SIGTERM']).toEqual(['SIGTERM']);
    expect(seconds(one('TimeoutStopSec'))).toBeGreaterThan(longestStop(settings));
  });

  it('takes away what the server does not need, and leaves what Node.js does', () => {
    const taken = ['NoNewPrivileges', 'PrivateTmp', 'PrivateDevices', 'ProtectHome', 'RestrictNamespaces'];
    expect(taken.map((name) => [name, one(name)])).toEqual(taken.map((name) => [name, 'yes']));
    expect([one('ProtectSystem'), one('CapabilityBoundingSet')]).toEqual(['strict', '']);
    expect(service.get('SystemCallFilter')?.[0]).toBe('@system-service');
    expect(one('MemoryDenyWriteExecute')).toBe('no');
    expect(one('RestrictAddressFamilies').split(' ')).toEqual(
      expect.arrayContaining(['AF_INET', 'AF_INET6', 'AF_UNIX']),
    );
  });
});
