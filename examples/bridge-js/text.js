// A program with one tool, text.repeat:
//
//   NATS_URL=nats://127.0.0.1:4222 node text.js     serves it
//   node text.js --install < record.json            adds it to an install record
//
// NATS_NKEY names a file with the seed of a NATS user.
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { nkeyAuthenticator } from '@nats-io/transport-node';
import { installRecord, serve, tool } from '@refold/client/bridge';
import { z } from 'zod';

const input = z.strictObject({
  text: z.string(),
  times: z.int().min(1).max(100_000).default(1),
  pause_ms: z.int().min(0).max(60_000).default(0),
});

const repeat = tool('text.repeat', { input, description: 'Repeats a text.', deadlineMs: 90_000 }, async ({ text, times, pause_ms }, { signal }) => {
  await pause(pause_ms, undefined, { signal });
  return text.repeat(times);
});

if (process.argv.includes('--install')) {
  console.log(JSON.stringify(installRecord(JSON.parse(readFileSync(0, 'utf8')), [repeat]), null, 2));
} else {
  const { NATS_URL: servers = 'nats://127.0.0.1:4222', NATS_NKEY: seed } = process.env;
  const connection = seed ? { authenticator: nkeyAuthenticator(new TextEncoder().encode(readFileSync(seed, 'utf8').trim())) } : {};
  await serve({ servers, connection, name: 'bridge-js', tools: [repeat], onServing: (instance) => console.error(`serves text.repeat as ${instance}`) });
}
