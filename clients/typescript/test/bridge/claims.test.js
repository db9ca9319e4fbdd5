// The rule table of docs/bridges.md, row by row.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Execution } from '../../dist/bridge/execution.js';
import { bridge, call, FakeDelivery } from './fakes.js';

const unsafe = (again = false) => new Execution(call(), new FakeDelivery(call(), again));
const safe = (again = true) => new Execution(call({ retry_safe: true }), new FakeDelivery(call({ retry_safe: true }), again));

/** A bridge that finds these claims. */
function found(e, ...claims) {
  const world = bridge();
  claims.forEach((claim, i) => world.wire.claims.set(`weather/s1.r1t1c0/${i + 1}`, { hash: e.hash, ...claim }));
  return world;
}
const stored = ({ wire }, n) => wire.claims.get(`weather/s1.r1t1c0/${n}`);

test('the first claim is ours', async () => {
  const e = unsafe();
  const world = found(e);
  assert.deepEqual(await world.claims.decide(e, 'weather'), { do: 'run' });
  assert.deepEqual(stored(world, 1), { by: 'self', hash: e.hash });
});

test('a retry-safe call that comes first needs no claim', async () => {
  const e = safe(false);
  const world = found(e);
  assert.deepEqual(await world.claims.decide(e, 'weather'), { do: 'run' });
  assert.equal(world.wire.claims.size, 0);
});

test('claims of other effects are passed', async () => {
  for (const other of [{ by: 'other', hash: 'ff' }, { by: 'other', foreign: true }]) {
    const e = unsafe();
    const world = found(e, other, { withdrawn: true, hash: 'ff' });
    assert.deepEqual(await world.claims.decide(e, 'weather'), { do: 'run' });
    assert.equal(stored(world, 3).by, 'self');
  }
});

test('a claim without a hash holds', async () => {
  const e = unsafe();
  const world = found(e, { withdrawn: true, hash: undefined });
  assert.deepEqual(await world.claims.decide(e, 'weather'), { do: 'ack' });
});

test('withdrawn', async () => {
  const e = unsafe();
  assert.deepEqual(await found(e, { withdrawn: true }).claims.decide(e, 'weather'), { do: 'ack' });
});

test('past start_by it is withdrawn and settled', async () => {
  for (const claims of [[], [{ withdrawn: true }]]) {
    const e = unsafe();
    const world = found(e, ...claims);
    world.time.ahead += 570_001;
    const rule = await world.claims.decide(e, 'weather');
    assert.equal(rule.outcome.error.code, 'deadline_exceeded');
    assert.equal(stored(world, 1).withdrawn, true);
  }
});

test('past start_by a retry-safe call is only settled', async () => {
  for (const again of [false, true]) {
    const e = safe(again);
    const world = found(e);
    world.time.ahead += 570_001;
    assert.equal((await world.claims.decide(e, 'weather')).outcome.status, 'failed');
    assert.equal(world.wire.claims.size, 0);
  }
});

test('after 45 minutes the outcome is unknown', async () => {
  const e = unsafe();
  const world = found(e);
  world.time.ahead += 46 * 60_000;
  assert.equal((await world.claims.decide(e, 'weather')).outcome.status, 'outcome_unknown');
});

test('the holder is alive', async () => {
  const e = unsafe();
  const world = found(e, { by: 'other' });
  world.detector.heard('other');
  assert.deepEqual(await world.claims.decide(e, 'weather'), { do: 'back', ms: 2000 });
});

test('the holder may be alive', async () => {
  const e = unsafe();
  const world = found(e, { by: 'other' });
  world.time.pass(3000);
  world.detector.heard('self'); // after a gap
  assert.deepEqual(await world.claims.decide(e, 'weather'), { do: 'back', ms: 5000 });
  world.listen(2000);
  assert.deepEqual(await world.claims.decide(e, 'weather'), { do: 'back', ms: 3000 });
});

test('the holder is gone', async () => {
  for (const claim of [{ by: 'other' }, {}]) { // one that is not readable has no by
    const e = unsafe();
    const { outcome } = await found(e, claim).claims.decide(e, 'weather');
    assert.deepEqual(outcome, { status: 'outcome_unknown', error: { code: 'outcome_unknown', detail: 'the bridge that ran this call is gone: it may have taken effect' } });
  }
});

test('a retry-safe call starts again until three processes died of it', async () => {
  for (const [claims, runs] of [
    [[{ by: 'a' }], true], [[{ by: 'a' }, { by: 'a' }], true], [[{ by: 'a' }, { by: 'b' }], false],
    [[{ by: 'a', released: true }, { by: 'b' }, { by: 'c' }], true], [[{ by: 'a' }, { by: 'a', released: true }, { by: 'b' }], true],
    [[{ by: 'a' }, { by: 'b' }, { by: 'b', released: true }, { by: 'c' }], false],
  ]) {
    const e = safe();
    const world = found(e, ...claims);
    const rule = await world.claims.decide(e, 'weather');
    assert.equal(rule.outcome?.error.code ?? rule.do, runs ? 'run' : 'bridge_lost', JSON.stringify(claims));
    assert.equal(stored(world, claims.length + 1).by, 'self');
  }
});

test('a call that was claimed before a gap runs only if it is open', async () => {
  for (const [views, want] of [
    [[{ clock: call().at + 5, open: ['r1t1c0'] }], { do: 'run' }],
    [[{ clock: call().at + 5, open: ['r1t2'] }], { do: 'ack' }],
    [[{ clock: call().at, open: [] }], { do: 'back', ms: 2000 }], // the view is older than the effect
  ]) {
    const e = unsafe();
    const world = found(e);
    await world.claims.decide(e, 'weather');
    world.time.pass(6000);
    world.detector.heard('self');
    assert.equal(world.claims.wasSilent(e), true);
    world.wire.views = views;
    assert.deepEqual(await world.claims.decide(e, 'weather'), want);
  }
});

test('without a view nobody can tell', async () => {
  const e = unsafe();
  const world = found(e);
  await world.claims.decide(e, 'weather');
  world.time.pass(6000);
  world.detector.heard('self');
  await assert.rejects(world.claims.decide(e, 'weather'), /no answer/);
});

test('an old retry-safe call starts unless the session withdrew it', async () => {
  for (const [views, want] of [
    [[], 'run'], [[{ clock: call().at + 9, open: ['r1t1c0'] }], 'run'], [[{ clock: call().at, open: [] }], 'run'], [[{ clock: call().at + 9, open: [] }], 'ack'],
  ]) {
    const e = safe(false);
    const world = found(e);
    world.wire.views = views;
    world.time.ahead += 1500;
    assert.equal((await world.claims.decide(e, 'weather')).do, want);
  }
});

test('a release is the next claim', async () => {
  const e = safe();
  const world = found(e, { by: 'other' });
  assert.deepEqual(await world.claims.decide(e, 'weather'), { do: 'run' });
  await world.claims.release(e, 'weather');
  assert.deepEqual(stored(world, 3), { by: 'self', hash: e.hash, released: true });
});
