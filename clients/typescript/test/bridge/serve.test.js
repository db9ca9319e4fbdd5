// What serve refuses. That it serves is a test with a server: make check-peers.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { serve, tool } from '@refold/client/bridge';
import { readContext } from '../../dist/bridge/context.js';
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

test('a context is read', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'context-')), 'context.json');
  const context = (fields) => {
    writeFileSync(file, JSON.stringify(fields));
    return readContext(file);
  };
  assert.deepEqual(context({ description: 'd' }), { connection: {} });
  assert.deepEqual(context({ url: 'a:1,b:2', user: 'u', password: 'p', inbox_prefix: '_I', ca: 'c', jetstream_domain: 'hub' }), {
    servers: ['a:1', 'b:2'], apiPrefix: '$JS.hub.API', connection: { user: 'u', pass: 'p', inboxPrefix: '_I', tls: { caFile: 'c' } },
  });
  assert.equal(context({ jetstream_api_prefix: 'acme.JS' }).apiPrefix, 'acme.JS');
  assert.equal(typeof context({ nkey: '/k' }).connection.authenticator, 'function');
  writeFileSync(file, '{');
  await assert.rejects(serve({ context: file, tools: [one] }), /^Error: the context .*context\.json can't be read: /);
});
