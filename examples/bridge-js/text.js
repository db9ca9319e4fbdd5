// A program with one tool, text.repeat:
//
//   node text.js                           serves it, on NATS_URL, as the user of NATS_CONTEXT
//   node text.js --install < record.json   adds it to an install record
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
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
  const { NATS_URL: servers, NATS_CONTEXT: context } = process.env;
  await serve({ servers, context, name: 'bridge-js', tools: [repeat], onServing: (instance) => console.error(`serves text.repeat as ${instance}`) });
}
