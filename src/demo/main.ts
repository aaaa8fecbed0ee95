import { Command } from 'commander';
import { tellCrashStory } from './crash-story.js';
import { DemoServer } from './demo-server.js';
import { tellStory, type Stage } from './story.js';
import { StepFailed, Transcript } from './transcript.js';

const program = new Command('demo')
  .description('The whole main job in one terminal: ask, answer, tell the loser, resume the agent, survive kill -9.')
  .option('--url <url>', 'a running server with authentication off, instead of one of its own');

async function main(): Promise<void> {
  const { url } = program.parse().opts<{ url?: string }>();
  const out = new Transcript();
  if (url !== undefined) {
    await tellStory({ url, ada: undefined, bob: undefined }, out);
  } else {
    const server = await DemoServer.start();
    try {
      const stage = await stageOn(server);
      await tellStory(stage, out);
      await tellCrashStory(server, stage.ada, out);
    } finally {
      await server.stop();
    }
  }
  console.log('\nEverything went as promised.');
}

async function stageOn(server: DemoServer): Promise<Stage & { readonly ada: string }> {
  await server.cli('user', 'create', 'ada');
  await server.cli('user', 'create', 'bob');
  return {
    url: server.url,
    ada: await server.cli('token', 'create', '--user', 'ada'),
    bob: await server.cli('token', 'create', '--user', 'bob'),
  };
}

main().catch((error: unknown) => {
  const told = error instanceof StepFailed ? `not so: ${error.message}` : String(error);
  console.error(`\nThe demo failed: ${told}`);
  process.exitCode = 1;
});
