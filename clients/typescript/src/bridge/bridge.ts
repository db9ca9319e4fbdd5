import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import type { JsMsg } from '@nats-io/jetstream';
import { connect, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node';
import { Claims } from './claims.js';
import { ServerClock } from './clock.js';
import { readContext, type Context } from './context.js';
import { Detector } from './detector.js';
import { STOP_WITHIN, type Delivery } from './execution.js';
import { Neighbours } from './neighbours.js';
import type { Tool } from './tool.js';
import { Wire } from './wire.js';
import { within } from './wait.js';
import { Worker, type Log } from './worker.js';

/** In milliseconds. */
const BEAT_EVERY = 500;
const AGAIN = 1000;
const PULL_FOR = 5000;
const FORGET_EVERY = 60_000;
const RECONNECT_WAIT = 250;
const GRACE = 20_000;
/** For the last settlements, after the grace time. */
const SETTLE_WITHIN = 5000;
const CONCURRENCY = 16;
/** tool_ids in a heartbeat. */
const TOOLS_MAX = 1024;

export interface ServeOptions {
  /** What the process serves: at least one tool. */
  tools: Tool[];
  /** Of NATS; the context's if absent, else nats://127.0.0.1:4222. */
  servers?: string | string[] | undefined;
  /** The file of a context of the nats tool, such as the context.json of a user that refold roles writes. */
  context?: string | undefined;
  /** Credentials, TLS and the like, for @nats-io/transport-node. */
  connection?: Omit<NodeConnectionOptions, 'servers'>;
  /** The deployment's prefix; refold if absent. */
  prefix?: string;
  /** Of the JetStream API; the context's if absent, else $JS.API. */
  apiPrefix?: string;
  /** The bridge's name in settlements and in NATS, for people. */
  name?: string;
  /** Calls of one target that run at once; 16 if absent. */
  concurrency?: number;
  /** How long calls may go on after the bridge was told to stop, in milliseconds; 20,000 if absent. */
  graceMs?: number;
  /** Tells the bridge to stop when it is aborted. */
  signal?: AbortSignal;
  /** Called once the bridge pulls, with its instance name. */
  onServing?: (instance: string) => void;
  /** Gets what people should know; standard error if absent. */
  log?: Log;
}

/** One start of a bridge process. */
export class Bridge {
  readonly #options: ServeOptions;
  readonly #instance = randomUUID();
  readonly #nc: NatsConnection;
  readonly #wire: Wire;
  readonly #log: Log;
  readonly #detector = new Detector(this.#instance);
  readonly #clock: ServerClock;
  readonly #workers: Worker[];
  readonly #draining = new AbortController();
  readonly #ended = new AbortController();
  #connected = true;
  #connection = 1;

  private constructor(options: ServeOptions, targets: Map<string, Tool[]>, nc: NatsConnection, wire: Wire, log: Log) {
    setMaxListeners(0, this.#draining.signal, this.#ended.signal); // each call in progress listens
    this.#options = options;
    this.#nc = nc;
    this.#wire = wire;
    this.#log = log;
    this.#clock = new ServerClock(() => wire.time(), log);
    const neighbours = new Neighbours();
    const parts = {
      wire, neighbours, log, clock: this.#clock, by: options.name ?? 'bridge', connection: () => this.#connection,
      draining: this.#draining.signal, ended: this.#ended.signal,
      claims: new Claims(this.#instance, wire, this.#detector, neighbours, this.#clock, this.#draining.signal),
    };
    this.#workers = [...targets].map(([target, tools]) => new Worker(target, tools, parts));
  }

  static async open(options: ServeOptions): Promise<Bridge> {
    const targets = byTarget(options.tools);
    const { prefix = 'refold', name = 'bridge' } = options;
    const context: Context = options.context ? readContext(options.context) : { connection: {} };
    const servers = options.servers ?? context.servers ?? 'nats://127.0.0.1:4222';
    const apiPrefix = options.apiPrefix ?? context.apiPrefix ?? '$JS.API';
    const ours = { name, maxReconnectAttempts: -1, reconnectTimeWait: RECONNECT_WAIT };
    const nc = await connect({ ...ours, ...context.connection, ...options.connection, servers }).catch((error: unknown) => {
      throw new Error(`can't connect to NATS at ${String(servers)}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    });
    return new Bridge(options, targets, nc, await Wire.open(nc, prefix, apiPrefix), options.log ?? toStandardError);
  }

  /** Tools that did not end when they were told to. */
  get abandoned(): number {
    return this.#workers.reduce((sum, w) => sum + w.abandoned, 0);
  }

  /** Serves until stop is called and all is settled or given back. It fails if the connection is closed. */
  async run(): Promise<void> {
    const closed = this.#nc.closed().then((error) => {
      if (!this.#ended.signal.aborted) throw error ?? new Error('the connection was closed');
    });
    void this.#watch();
    const timers: NodeJS.Timeout[] = [];
    try {
      await Promise.race([closed, this.#serve(timers)]);
    } finally {
      this.#draining.abort();
      this.#ended.abort();
      this.#clock.end();
      timers.forEach(clearInterval);
      await this.#nc.drain().catch(() => {}); // it may be closed
    }
  }

  /** Takes nothing new from now on. */
  stop(): void {
    this.#draining.abort();
  }

  async #serve(timers: NodeJS.Timeout[]): Promise<void> {
    this.#subscribe();
    timers.push(setInterval(() => this.#beat(), BEAT_EVERY));
    this.#beat();
    await Promise.all([this.#readLog(), this.#clock.start()]);
    let serving = 0;
    const pulls = this.#workers.map((w) => this.#pull(w, timers, () => {
      if (++serving === this.#workers.length) this.#options.onServing?.(this.#instance);
    }));
    await within(new Promise(() => {}), undefined, this.#draining.signal);
    await within(this.#idle(), this.#options.graceMs ?? GRACE, this.#ended.signal);
    this.#workers.forEach((w) => w.stop());
    await within(this.#idle(), STOP_WITHIN + SETTLE_WITHIN, this.#ended.signal);
    await Promise.all(pulls);
  }

  /** Waits until nothing is in progress. */
  async #idle(): Promise<void> {
    for (const w of this.#workers) while (w.running > 0) await w.change();
  }

  #subscribe(): void {
    const { prefix } = this.#wire;
    this.#nc.subscribe(`${prefix}.alive.bridge.*`, {
      callback: (error, m) => {
        if (!error && !this.#wire.isForeign(m.headers)) this.#detector.heard(last(m.subject));
      },
    });
    this.#nc.subscribe(`${prefix}.cancel.*`, {
      callback: (error, m) => {
        if (error || this.#wire.isForeign(m.headers)) return;
        try {
          const { effects } = m.json<{ effects: string[] }>();
          this.#workers.forEach((w) => w.cancel(last(m.subject), effects));
        } catch (unreadable) {
          this.#log('a cancellation is not readable', { subject: m.subject, error: String(unreadable) });
        }
      },
    });
  }

  #beat(): void {
    if (!this.#connected || this.#nc.isClosed()) return;
    const ahead = this.#clock.aheadMs();
    const tools = Object.fromEntries(this.#workers.map((w) => [w.target, w.toolIds]));
    this.#nc.publish(`${this.#wire.prefix}.alive.bridge.${this.#instance}`, JSON.stringify({
      targets: this.#workers.map((w) => `tool/${w.target}`), rules: 1,
      ...(this.#options.tools.length <= TOOLS_MAX ? { tools } : {}), ...(ahead ? { clock_ahead_ms: ahead } : {}),
    }));
  }

  /** Follows the state of the connection. */
  async #watch(): Promise<void> {
    for await (const s of this.#nc.status()) {
      if (s.type === 'disconnect') {
        this.#connected = false;
        this.#connection++;
        this.#workers.forEach((w) => w.disconnected());
        this.#log('disconnected', { server: s.server });
      } else if (s.type === 'reconnect') {
        this.#connected = true;
        this.#log('connected again', { server: s.server });
        void this.#readLog();
      } else if (s.type === 'error') {
        this.#log('the server reports an error', { error: String(s.error) });
      }
    }
  }

  async #readLog(): Promise<void> {
    await this.#wire.readLog().catch((error: unknown) => this.#log('the identity of the log is not known yet', { error: String(error) }));
  }

  /** Pulls effects of a target as long as there is room, until the bridge stops. */
  async #pull(w: Worker, timers: NodeJS.Timeout[], serving: () => void): Promise<void> {
    const most = this.#options.concurrency ?? CONCURRENCY;
    const stopping = this.#draining.signal;
    let told = '';
    let began = false;
    while (!stopping.aborted) {
      try {
        const { consumer, lease } = await this.#wire.consumer(w.target);
        if (!began) {
          began = true;
          timers.push(setInterval(() => !this.#nc.isClosed() && w.extend(), lease / 3), setInterval(() => w.forget(), FORGET_EVERY));
          serving();
        }
        for (told = ''; !stopping.aborted; ) {
          if (w.running >= most) {
            await within(w.change(), undefined, stopping);
            continue;
          }
          const messages = await consumer.fetch({ max_messages: most - w.running, expires: PULL_FOR });
          const end = () => messages.stop();
          stopping.addEventListener('abort', end);
          for await (const m of messages) {
            this.#take(w, m).catch((error: unknown) => this.#log('a delivery is not answered', { subject: m.subject, error: String(error) }));
          }
          stopping.removeEventListener('abort', end);
        }
      } catch (error) {
        if (String(error) !== told) this.#log('effects are not pulled', { target: w.target, error: told = String(error) });
        await pause(AGAIN, undefined, { signal: stopping }).catch(() => {});
      }
    }
  }

  async #take(w: Worker, m: JsMsg): Promise<void> {
    if (this.#wire.isForeign(m.headers)) return m.ack();
    const delivery: Delivery = {
      subject: m.subject, data: m.data, redelivered: m.redelivered,
      ack: () => m.ack(), nak: (ms) => m.nak(ms), working: () => m.working(),
    };
    await w.take(delivery);
  }
}

function byTarget(tools: Tool[]): Map<string, Tool[]> {
  const all = new Map<string, Tool[]>();
  const names = new Set<string>();
  for (const t of tools) {
    const { tool_id, executor } = t.spec;
    if (names.has(tool_id)) throw new TypeError(`two tools have the id ${tool_id}`);
    names.add(tool_id);
    all.set(executor.target, [...(all.get(executor.target) ?? []), t]);
  }
  if (all.size === 0) throw new TypeError('no tools are given');
  return all;
}

function last(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}

function toStandardError(message: string, fields: Record<string, unknown>): void {
  const all = Object.entries(fields).map(([key, value]) => ` ${key}=${JSON.stringify(value)}`).join('');
  console.error(`bridge: ${message}${all}`);
}
