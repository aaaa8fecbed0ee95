import { Injectable, RequestMethod } from '@nestjs/common';
import type { OnApplicationBootstrap } from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { DiscoveryService, MetadataScanner } from '@nestjs/core';
import { AccessPolicies } from './access-policies.js';
import { contractOf } from './contract.js';
import type { Contract } from './contract.js';

export interface Route {
  /** `get`, `post`, … */
  readonly method: string;
  /** As in OpenAPI: `/api/v1/tasks/{id}`. */
  readonly path: string;
  /** `TasksController.complete` */
  readonly name: string;
  readonly contract: Contract;
}

/** Every route of every controller, with its contract. Fails the start when one has none, or none to enforce it. */
@Injectable()
export class ContractedRoutes implements OnApplicationBootstrap {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly policies: AccessPolicies,
  ) {}

  onApplicationBootstrap(): void {
    for (const { name, contract } of this.all()) {
      const { kind } = contract.access;
      if (kind !== 'open' && kind !== 'identified' && !this.policies.has(kind)) {
        throw new Error(`${name} needs an access policy for a ${kind}, and no feature has registered one`);
      }
    }
  }

  /** @throws Error naming the handler that has no contract */
  all(): Route[] {
    return this.discovery.getControllers().flatMap(({ metatype }) => {
      if (typeof metatype !== 'function') return [];
      const prototype = metatype.prototype as Record<string, unknown>;
      return this.scanner
        .getAllMethodNames(prototype)
        .flatMap((name) => routesOf(metatype, name, prototype[name] as object));
    });
  }
}

function routesOf(controller: object & { readonly name: string }, method: string, handler: object): Route[] {
  const verb = Reflect.getMetadata(METHOD_METADATA, handler) as RequestMethod | undefined;
  if (verb === undefined) return [];
  const name = `${controller.name}.${method}`;
  const contract = contractOf(handler);
  if (contract === undefined) throw new Error(`${name} has no @Contract`);
  const paths = (source: object) => [(Reflect.getMetadata(PATH_METADATA, source) as string | string[]) ?? ''].flat();
  return paths(controller).flatMap((prefix) =>
    paths(handler).map((path) => ({
      method: RequestMethod[verb].toLowerCase(),
      path: joined(prefix, path),
      name,
      contract,
    })),
  );
}

function joined(prefix: string, path: string): string {
  const segments = `${prefix}/${path}`.split('/').filter((segment) => segment !== '');
  return `/${segments.map((segment) => segment.replace(/^:(\w+)$/, '{$1}')).join('/')}`;
}
