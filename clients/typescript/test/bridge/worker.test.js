// What happens to deliveries: how calls end, and how each delivery is answered.
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { encode } from '@msgpack/msgpack';
import { tool, ToolError, ToolResult, UnknownOutcomeError } from '@refold/client/bridge';
import { z } from 'zod';
import { sha256 } from '../../dist/bridge/effect.js';
import { bridge, call, FakeDelivery } from './fakes.js';

/** A bridge whose tool does as fn does, and lets `began` be awaited. */
function weather(fn) {
  let start;
  const began = new Promise((resolve) => { start = resolve; });
  const world = bridge(tool('weather.get', { input: z.object({ city: z.string() }) }, (input, ctx) => {
    start(ctx);
    return fn(input, ctx);
  }));
  return { ...world, world, began };
}

/** Takes one call, and returns its settlement and how it was answered. */
async function settled(fn, more, before = () => {}) {
  const w = weather(fn);
  before(w);
  const m = new FakeDelivery(call(more));
  await w.worker.take(m);
  assert.equal(w.worker.running, 0);
  return { ...w, m, data: w.wire.events[0]?.data };
}

const untilAborted = (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

test('a call is settled, then acknowledged', async () => {
  const { wire, m, began } = await settled(({ city }) => `rain in ${city}`);
  const ctx = await began;
  assert.deepEqual([ctx.session, ctx.effect, ctx.toolId, ctx.idempotencyKey, ctx.retrySafe, ctx.runMs], ['s1', 'r1t1c0', 'weather.get', 's1.r1t1c0', false, 30_000]);
  const { at, ...event } = wire.events[0];
  assert.equal(typeof at, 'number');
  delete event.data.duration_ms;
  assert.deepEqual(event, {
    type: 'ToolCallSettled', v: 1, by: 'test', data: { effect: 'r1t1c0', status: 'succeeded', output: { text: 'rain in Bergen' }, plan_hash: '07'.repeat(32) },
  });
  assert.match(wire.stored.id, /^s1\.r1t1c0\.[0-9a-f]{64}$/);
  assert.deepEqual(m.answers, ['ack']);
});

test('what a tool returns', async () => {
  const png = Uint8Array.of(0x89, 0x50, 0, 0xff);
  for (const [returned, output] of [
    [undefined, undefined], ['', undefined], [{ mm: 3 }, { text: '{"mm":3}' }], [[1], { text: '[1]' }], [0, { text: '0' }],
    [new TextEncoder().encode('å'), { text: 'å' }], ['half \ud83d', { text: 'half \ufffd' }],
    [png, { blob: 'sha256-0', media_type: 'application/octet-stream', size: 4 }],
    [new ToolResult('see', [{ data: png, mediaType: 'image/png', name: 'a.png' }]), { parts: [{ text: 'see' }, { blob: 'sha256-0', media_type: 'image/png', size: 4, name: 'a.png' }] }],
  ]) {
    const { data } = await settled(() => returned);
    assert.deepEqual([data.status, data.output], ['succeeded', output]);
  }
});

test('how a tool fails', async () => {
  for (const [thrown, retry_safe, status, error] of [
    [new ToolError('no_city', 'none'), false, 'failed', { code: 'no_city', detail: 'none' }],
    [new ToolError('busy', 'later', { retryable: true }), false, 'failed', { code: 'busy', detail: 'later', retryable: true }],
    [new ToolError('No City', 'none'), false, 'failed', { code: 'executor_error', detail: 'No City: none' }],
    [new ToolError('long', 'å'.repeat(200)), false, 'failed', { code: 'long', detail: 'å'.repeat(128) }],
    [new UnknownOutcomeError('cut'), true, 'outcome_unknown', { code: 'outcome_unknown', detail: 'it may have taken effect: cut' }],
    [new Error('boom'), true, 'failed', { code: 'executor_error', detail: 'boom' }],
    [new Error('boom'), false, 'outcome_unknown', { code: 'outcome_unknown', detail: 'the tool failed in the middle of its work, it may have taken effect: boom' }],
  ]) {
    const { data, m } = await settled(() => { throw thrown; }, { retry_safe });
    assert.deepEqual([data.status, data.error, m.answers], [status, error, ['ack']]);
  }
});

test('a result without a form in JSON', async () => {
  for (const [retry_safe, status] of [[true, 'failed'], [false, 'outcome_unknown']]) {
    const { data } = await settled(() => ({ n: 1n }), { retry_safe });
    assert.deepEqual([data.status, data.error.code], [status, 'result_unreadable']);
  }
});

test('arguments that do not fit, and a tool that is not there', async () => {
  const never = () => assert.fail('it ran');
  const wrong = await settled(never, { arguments: '{"city":3}' });
  assert.deepEqual([wrong.data.status, wrong.data.error.code], ['failed', 'invalid_arguments']);
  const missing = await settled(never, { tool_id: 'weather.warn' });
  assert.equal(missing.data.error.detail, 'the program that serves this target has weather.get, and not weather.warn');
  assert.equal(missing.wire.claims.size, 1, 'it is claimed as if it ran');
});

test('a large text is a blob', async () => {
  const { data, wire } = await settled(() => 'å'.repeat(131_073));
  assert.deepEqual(data.output, { blob: 'sha256-0', media_type: 'text/plain; charset=utf-8', size: 262_146 });
  assert.equal(wire.blobs.get('sha256-0').length, 262_146);
});

test('a text that no event holds is a blob', async () => {
  const escaped = await settled(() => '\u0001'.repeat(200_000)); // six bytes each in JSON
  assert.equal(escaped.data.output.size, 200_000);
  const small = await settled(() => 'x'.repeat(100_000), {}, ({ wire }) => { wire.payloadMax = 65_536; });
  assert.equal(small.data.output.size, 100_000);
});

test('a settlement is repeated until it is stored', async () => {
  const { wire, m, logged } = await settled(() => 'x', {}, ({ wire }) => { wire.failures = 2; });
  assert.equal(wire.events.length, 1);
  assert.equal(logged.filter((line) => line === 'a settlement is not stored yet').length, 2);
  assert.deepEqual(m.answers, ['ack']);
});

test('a message that can not be read', async () => {
  const { worker, logged } = weather(() => 'x');
  for (const [payload, answer] of [[encode(call({ zone: 1 })), 'nak 10000'], [Uint8Array.of(0xc1), 'ack']]) {
    const m = new FakeDelivery(payload);
    await worker.take(m);
    assert.deepEqual(m.answers, [answer]);
  }
  assert.equal(logged.length, 2);
});

test('a delivery of a call that runs is extended, and answered in place of the first', async () => {
  let end;
  const { worker, began, wire } = weather(() => new Promise((resolve) => { end = resolve; }));
  const [first, second] = [new FakeDelivery(call()), new FakeDelivery(call(), true)];
  const taking = worker.take(first);
  await began;
  await worker.take(second);
  worker.extend();
  end('x');
  await taking;
  assert.deepEqual([first.answers, second.answers, wire.events.length], [[], ['working', 'working', 'ack'], 1]);
});

test('after the connection broke nothing is answered on the old one', async () => {
  let end;
  const { worker, began, wire } = weather(() => new Promise((resolve) => { end = resolve; }));
  const m = new FakeDelivery(call());
  const taking = worker.take(m);
  await began;
  worker.disconnected();
  worker.extend();
  end('x');
  await taking;
  assert.deepEqual([m.answers, wire.events.length], [[], 1]);
});

test('an effect that the server lost is stopped and not settled', async () => {
  const { worker, began, wire } = weather(untilAborted);
  const [lost, next] = [new FakeDelivery(call()), new FakeDelivery(call({ at: call().at + 1 }))];
  const taking = worker.take(lost);
  await began;
  await worker.take(next);
  await taking;
  assert.deepEqual([lost.answers, next.answers, wire.events], [[], ['nak 2000'], []]);
});

test('a settled call that comes again', async () => {
  for (const { connection, kept, retry_safe, starts, status, answers } of [
    { connection: 1, starts: 1, status: ['succeeded'], answers: ['ack'] },
    { connection: 2, kept: true, starts: 1, status: ['succeeded'], answers: ['ack'] },
    { connection: 2, kept: false, starts: 1, status: ['succeeded', 'outcome_unknown'], answers: ['ack'] },
    { connection: 2, kept: false, retry_safe: true, starts: 2, status: ['succeeded', 'succeeded'], answers: ['ack'] },
  ]) {
    let ran = 0;
    const { world, worker, wire } = weather(() => `${++ran}`);
    await worker.take(new FakeDelivery(call({ retry_safe })));
    wire.kept = kept && sha256(wire.stored.event);
    world.connection = connection;
    const m = new FakeDelivery(call({ retry_safe }), true);
    await worker.take(m);
    assert.deepEqual([ran, wire.events.map((e) => e.data.status), m.answers], [starts, status, answers]);
  }
});

test('what is told to end while it runs', async () => {
  for (const [stop, retry_safe, status, code] of [
    ['cancel', true, 'cancelled', 'cancelled'], ['cancel', false, 'outcome_unknown', 'outcome_unknown'],
    ['run_ms', true, 'failed', 'deadline_exceeded'], ['run_ms', false, 'outcome_unknown', 'outcome_unknown'],
    ['stop', false, 'outcome_unknown', 'outcome_unknown'],
  ]) {
    const { worker, began, wire } = weather(untilAborted);
    const m = new FakeDelivery(call({ retry_safe, ...(stop === 'run_ms' ? { run_ms: 5 } : {}) }));
    const taking = worker.take(m);
    await began;
    if (stop === 'cancel') worker.cancel('s1', ['r1t9c9', 'r1t1c0']);
    if (stop === 'stop') worker.stop();
    await taking;
    const { data } = wire.events[0];
    assert.deepEqual([data.status, data.error.code, m.answers], [status, code, ['ack']], `${stop} ${retry_safe}`);
  }
});

test('a tool that is sure that nothing took effect is cancelled', async () => {
  const { worker, began, wire } = weather((_, { signal }) => new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new ToolError('stopped', 'before the request was sent')));
  }));
  const taking = worker.take(new FakeDelivery(call()));
  await began;
  worker.cancel('s1', ['r1t1c0']);
  await taking;
  assert.equal(wire.events[0].data.status, 'cancelled');
});

test('a tool that does not end is settled without it', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  let end;
  const { worker, began, wire } = weather(() => new Promise((resolve) => { end = resolve; }));
  const taking = worker.take(new FakeDelivery(call()));
  await began;
  worker.cancel('s1', ['r1t1c0']);
  mock.timers.tick(4999);
  assert.equal(worker.running, 1);
  mock.timers.tick(1);
  mock.timers.reset();
  await taking;
  assert.deepEqual([worker.abandoned, wire.events.length, wire.events[0].data.status], [1, 1, 'outcome_unknown']);
  end('late');
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([worker.abandoned, wire.events.length], [0, 1]);
});

test('a call that was cancelled before it was claimed is left to the session', async () => {
  const { worker, wire } = weather(() => assert.fail('it ran'));
  const claim = wire.claim.bind(wire);
  wire.claim = async (...args) => {
    worker.cancel('s1', ['r1t1c0']);
    wire.claims.set('weather/s1.r1t1c0/1', { withdrawn: true, hash: args[3].hash });
    return claim(...args);
  };
  const m = new FakeDelivery(call());
  await worker.take(m);
  assert.deepEqual([m.answers, wire.events], [['ack'], []]);
});

test('a call that was cancelled before it started is not started', async () => {
  for (const retry_safe of [true, false]) {
    const { worker, wire } = weather(() => assert.fail('it ran'));
    const m = new FakeDelivery(call({ retry_safe }), true);
    const claim = wire.claim.bind(wire);
    wire.claim = async (...args) => {
      worker.cancel('s1', ['r1t1c0']);
      return claim(...args);
    };
    await worker.take(m);
    assert.deepEqual([wire.events[0].data.status, m.answers], ['cancelled', ['ack']]);
  }
});

test('a bridge that was silent since it claimed does not start a call', async () => {
  const { worker, wire, time, detector } = weather(() => assert.fail('it ran'));
  const claim = wire.claim.bind(wire);
  wire.claim = async (...args) => {
    const stands = await claim(...args);
    queueMicrotask(() => queueMicrotask(() => time.pass(6000))); // it is frozen after it has won
    return stands;
  };
  wire.views = [{ clock: call().at + 1, open: [] }, { clock: call().at + 1, open: [] }];
  const m = new FakeDelivery(call());
  await worker.take(m);
  assert.deepEqual(m.answers, ['nak 500']);
  detector.heard('self');
  const again = new FakeDelivery(call(), true);
  await worker.take(again);
  assert.deepEqual([again.answers, wire.events], [['ack'], []], 'another bridge has answered for it');
});

test('a claim that is not answered is given back', async () => {
  const { worker, wire, logged } = weather(() => assert.fail('it ran'));
  wire.claim = async () => { throw new Error('timeout'); };
  const m = new FakeDelivery(call());
  await worker.take(m);
  assert.deepEqual([m.answers, logged], [['nak 2000'], ['a call is given back']]);
});

test('a bridge that stops takes nothing new, and gives retry-safe calls back', async () => {
  const { worker, began, wire, drain } = weather(untilAborted);
  const m = new FakeDelivery(call({ retry_safe: true }));
  const taking = worker.take(m);
  await began;
  drain.abort();
  const other = new FakeDelivery(call({ session: 's2' }));
  await worker.take(other);
  worker.stop();
  await taking;
  assert.deepEqual([other.answers, m.answers, wire.events], [['nak 100'], ['nak 100'], []]);
  const [claim] = wire.claims.values();
  assert.deepEqual([claim.by, claim.released], ['self', true], 'its end is no death by the call');
});
