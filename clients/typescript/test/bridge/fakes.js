// What tests of the bridge use in place of a server and of time.
import { encode } from '@msgpack/msgpack';
import { Claims } from '../../dist/bridge/claims.js';
import { Detector } from '../../dist/bridge/detector.js';
import { Neighbours } from '../../dist/bridge/neighbours.js';
import { Worker } from '../../dist/bridge/worker.js';

export const subject = 'refold.fx.tool.weather.s1.r1t1c0';
const began = 1_763_715_602_000;

/** A call as it is published. */
export function call(more = {}) {
  return {
    v: 1, class: 'tool', session: 's1', effect: 'r1t1c0', tool_id: 'weather.get', tool_name: 'weather_get', arguments: '{"city":"Bergen"}',
    at: began, start_by: began + 570_000, run_ms: 30_000, batch: 'r1t1', call: 0, idempotency_key: 's1.r1t1c0', plan_hash: new Uint8Array(32).fill(7),
    ...Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined)),
  };
}

/** Two clocks that pass when a test says so. */
export class FakeTime {
  now = 0;
  ahead = began;
  shown() { return this.now + this.ahead; }
  running() { return this.now; }
  pass(ms) { this.now += ms; }
}

/** A delivery, and how it was answered. */
export class FakeDelivery {
  answers = [];
  constructor(of, redelivered = false) {
    this.subject = of.session ? `refold.fx.tool.weather.${of.session}.${of.effect}` : subject;
    this.data = of instanceof Uint8Array ? of : encode(of);
    this.redelivered = redelivered;
  }
  ack() { this.answers.push('ack'); }
  nak(ms) { this.answers.push(`nak ${ms}`); }
  working() { this.answers.push('working'); }
}

/** A server that stores claims, settlements and blobs. */
export class FakeWire {
  claims = new Map();
  events = [];
  blobs = new Map();
  views = [];
  payloadMax = 1 << 20;
  failures = 0;

  async claim(target, name, n, body) {
    const key = `${target}/${name}/${n}`;
    if (!this.claims.has(key)) this.claims.set(key, body);
    return this.claims.get(key);
  }

  async view() {
    const view = this.views.shift();
    if (!view) throw new Error('no answer');
    return view;
  }

  async settle(session, id, event) {
    if (this.failures > 0) {
      this.failures--;
      throw new Error('the stream is full');
    }
    this.events.push(JSON.parse(event));
    this.stored = { session, id, event };
    return this.events.length;
  }

  async eventHash() { return this.kept; }

  async putBlob(data) {
    const name = `sha256-${this.blobs.size}`;
    this.blobs.set(name, data);
    return name;
  }
}

/** A bridge of these tools, which has listened for ten seconds. */
export function bridge(...tools) {
  const [wire, time, drain, end] = [new FakeWire(), new FakeTime(), new AbortController(), new AbortController()];
  const detector = new Detector('self', time);
  const listen = (ms) => {
    for (; ms > 0; ms -= 500) {
      time.pass(500);
      detector.heard('self');
    }
  };
  listen(10_000);
  time.ahead = began - time.now;
  const clock = { now: () => time.shown() };
  const neighbours = new Neighbours();
  const claims = new Claims('self', wire, detector, neighbours, clock, drain.signal);
  const world = { wire, time, detector, listen, clock, claims, drain, end, connection: 1, logged: [] };
  world.worker = new Worker('weather', tools, {
    wire, claims, neighbours, clock, by: 'test', connection: () => world.connection, draining: drain.signal, ended: end.signal,
    log: (message) => world.logged.push(message),
  });
  return world;
}
