import type { PublishedTool, Surface } from './mcp-cases.js';
import type { OpenApi } from './rest-cases.js';
import type { FuzzWorld } from './world.js';
import type { Wire } from './wire.js';

/** What the running server says of itself. */
export interface Published {
  readonly document: OpenApi & { readonly components: { readonly schemas: object } };
  readonly tools: Readonly<Record<Surface, readonly PublishedTool[]>>;
}

export async function readPublished(world: FuzzWorld, wire: Wire): Promise<Published> {
  const reply = await wire.send({ method: 'GET', path: '/docs-json', headers: [['host', new URL(wire.url).host]] });
  if (reply.kind !== 'reply' || reply.status !== 200) throw new Error('the server does not publish /docs-json');
  return {
    document: JSON.parse(reply.body.toString('utf8')) as Published['document'],
    tools: { external: await world.toolsOf('external'), session: await world.toolsOf('session') },
  };
}
