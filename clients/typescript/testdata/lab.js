// A bridge for tests of its death: `node lab.js LEDGER` serves tools that write a line to
// the ledger when they begin.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { serve, tool } from '@refold/client/bridge';
import { z } from 'zod';

const ledger = process.argv[2];
const input = z.object({});

/** Writes that a tool began, and returns how often it has. */
function begin(name, { idempotencyKey }) {
  appendFileSync(ledger, `${name} ${idempotencyKey}\n`);
  return readFileSync(ledger, 'utf8').split('\n').filter((line) => line.startsWith(`${name} `)).length;
}

/** Waits until the test lets go. */
async function released(signal) {
  while (!existsSync(`${ledger}.go`)) await pause(20, undefined, { signal });
}

const tools = [
  tool('lab.kill', { input, retrySafe: true }, (_, ctx) => {
    begin('kill', ctx);
    process.kill(process.pid, 'SIGKILL');
  }),
  tool('lab.note', { input }, async (_, ctx) => {
    begin('note', ctx);
    await pause(4000, undefined, { signal: ctx.signal });
    return 'noted';
  }),
  tool('lab.hold', { input, retrySafe: true, parallelSafe: true }, async (_, ctx) => {
    if (begin('hold', ctx) === 1) await new Promise(() => {});
    return 'held';
  }),
  tool('lab.once', { input, parallelSafe: true }, async (_, ctx) => {
    begin('once', ctx);
    await released(ctx.signal);
    return 'done';
  }),
];

await serve({ servers: process.env.NATS_URL, tools, graceMs: 1000 });
