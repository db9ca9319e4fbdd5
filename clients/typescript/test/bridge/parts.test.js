// The parts that decide nothing about calls: effects, clocks, heartbeats, neighbours.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encode } from '@msgpack/msgpack';
import { ServerClock } from '../../dist/bridge/clock.js';
import { Detector } from '../../dist/bridge/detector.js';
import { readEffect } from '../../dist/bridge/effect.js';
import { Neighbours } from '../../dist/bridge/neighbours.js';
import { call, FakeTime, subject } from './fakes.js';

test('an effect is read', () => {
  const { call: read } = readEffect(subject, encode(call({ retry_safe: true })));
  assert.equal(read.arguments, '{"city":"Bergen"}');
  assert.equal(read.plan_hash.length, 32);
  assert.ok(readEffect(`${subject}-01K5E2`, encode(call())).call, 'the subject beside an effect of another system');
});

test('an effect of a newer release', () => {
  for (const more of [{ zone: 'a' }, { v: 2 }, { v: 2, at: 'later' }]) {
    assert.ok(readEffect(subject, encode(call(more))).newer, JSON.stringify(more));
  }
});

test('a message that is no effect', () => {
  const { at: _, ...without } = call();
  for (const bad of [[1], 'text', null, without, call({ v: 'one' }), call({ session: 's2' }), call({ effect: 'r1t1c1' }), call({ class: 'llm' }),
    call({ plan_hash: 'ff' }), call({ run_ms: 0 }), call({ retry_safe: 1 })]) {
    assert.ok(readEffect(subject, encode(bad)).bad, JSON.stringify(bad));
  }
  assert.ok(readEffect(subject, Uint8Array.of(0xc1)).bad);
  assert.ok(readEffect(subject, encode(call()).subarray(0, 20)).bad);
});

test("the server's time does not follow this machine's clock", async () => {
  const time = new FakeTime();
  const logged = [];
  let asked = 0;
  const clock = new ServerClock(async () => { asked++; time.pass(20); return 5_000_000; }, (message) => logged.push(message), time);
  await clock.look();
  assert.equal(clock.now(), 5_000_010, 'half of the round trip is added');
  assert.equal(clock.aheadMs(), time.shown() - 5_000_010);
  assert.match(logged[0], /differs from the NATS server's/);
  time.pass(500);
  await clock.look();
  assert.equal(asked, 1);
  time.ahead += 7000; // somebody set it
  assert.equal(clock.now(), 5_000_510);
  await clock.look();
  assert.equal(asked, 2, 'it is measured at once after a step');
  time.pass(60_000);
  await clock.look();
  assert.equal(asked, 3, 'it is measured each minute');
});

test('a clock that can not be measured stays', async () => {
  const time = new FakeTime();
  const clock = new ServerClock(async () => { throw new Error('no answer'); }, () => {}, time);
  await clock.look();
  time.pass(100);
  assert.equal(clock.now(), time.shown());
});

/** Hears itself each half second for so long. */
function listen(detector, time, ms) {
  for (let passed = 0; passed < ms; passed += 500) {
    time.pass(500);
    detector.heard('self');
  }
}

test('an instance is gone after five seconds of listening', () => {
  const time = new FakeTime();
  const d = new Detector('self', time);
  d.heard('other');
  assert.equal(d.state('other'), 'alive');
  assert.equal(d.state('dead'), 5000, 'we did not hear ourselves yet');
  listen(d, time, 500);
  assert.equal(d.state('dead'), 5000);
  listen(d, time, 4500);
  assert.equal(d.state('dead'), 500);
  assert.equal(d.state('other'), 500);
  listen(d, time, 500);
  assert.equal(d.state('dead'), 'gone');
  assert.equal(d.state(undefined), 'gone', 'the claim is not readable');
  d.heard('other');
  assert.equal(d.state('other'), 'alive');
});

test('a gap in our own heartbeats begins the listening anew', () => {
  for (const freeze of [(time) => time.pass(2500), (time) => { time.pass(500); time.ahead += 60_000; }]) {
    const time = new FakeTime();
    const d = new Detector('self', time);
    listen(d, time, 10_000);
    const { gaps } = d;
    assert.equal(d.heardSince(gaps), true);
    freeze(time); // a suspended machine: only the clock that shows the time goes on
    assert.equal(d.state('dead'), 5000);
    assert.equal(d.heardSince(gaps), false);
    d.heard('self');
    assert.equal(d.heardSince(gaps), false);
    assert.equal(d.heardSince(d.gaps), true);
    assert.equal(d.state('dead'), 5000);
    listen(d, time, 5000);
    assert.equal(d.state('dead'), 'gone');
  }
});

test('calls that kill run apart', async () => {
  const n = new Neighbours();
  const ran = [];
  const enter = (name, kind) => {
    const place = { name };
    void n.enter(place, kind).then(() => ran.push(name));
    return place;
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const [safe, fragile] = [enter('safe', 'harmless'), enter('fragile', 'fragile')];
  const suspect = enter('suspect', 'suspect');
  const killer = enter('killer', 'killer');
  const after = enter('after', 'harmless');
  await settled();
  assert.deepEqual(ran, ['safe', 'fragile'], 'what comes after a killer waits for it');
  n.leave(fragile);
  await settled();
  assert.deepEqual(ran.slice(2), ['suspect']);
  n.leave(suspect);
  n.leave(safe);
  await settled();
  assert.deepEqual(ran.slice(3), ['killer']);
  n.leave(killer);
  await settled();
  assert.deepEqual(ran.slice(4), ['after']);
  n.leave(after);
});
