#!/usr/bin/env node
// The command that the package installs: alone it is the server, with arguments the operator's command line.
if (process.argv.length > 2) await import('./cli/main.js');
else await import('./main.js');

export {};
