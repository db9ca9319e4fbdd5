// What serve refuses. That it serves is a test with a server: make check-peers.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { serve, tool } from '@refold/client/bridge';
import { z } from 'zod';

const one = tool('a.b', { input: z.object({}) }, () => {});

test('tools with a mistake are refused before anything is sent', async () => {
  await assert.rejects(serve({ servers: '127.0.0.1:1', tools: [] }), /no tools are given/);
  await assert.rejects(serve({ servers: '127.0.0.1:1', tools: [one, one] }), /two tools have the id a\.b/);
});

test('a server that is not there is named', async () => {
  const free = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => free.once('listening', resolve));
  const servers = `127.0.0.1:${free.address().port}`;
  await new Promise((resolve) => free.close(resolve));
  await assert.rejects(serve({ servers, tools: [one] }), (error) => error.message.startsWith(`can't connect to NATS at ${servers}: `));
  assert.equal(process.listenerCount('SIGTERM'), 0);
});
