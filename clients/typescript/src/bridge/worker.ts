import { HELD, STOPPING, type Claims } from './claims.js';
import type { ServerClock } from './clock.js';
import { readEffect, type ToolCall } from './effect.js';
import { Execution, type Delivery } from './execution.js';
import type { Neighbours } from './neighbours.js';
import { fail, tooLate, unknown, type Outcome } from './outcome.js';
import { settle, type Settled, type SettlementWire } from './settlement.js';
import type { Tool } from './tool.js';

/** Before an effect is delivered again that only a newer bridge can read, in milliseconds. */
const NEWER = 10_000;
const SILENT = 500;
/** Settled effects and claims are remembered for so long after start_by, in milliseconds. */
const REMEMBERED = 600_000;

export type Log = (message: string, fields: Record<string, unknown>) => void;

/** What a worker needs. */
export interface Parts {
  wire: SettlementWire & { eventHash(seq: number): Promise<string | undefined> };
  claims: Claims;
  neighbours: Neighbours;
  clock: Pick<ServerClock, 'now'>;
  log: Log;
  /** The bridge's name in settlements, for people. */
  by: string;
  /** The number of the connection. */
  connection: () => number;
  /** Aborted when nothing more is started. */
  draining: AbortSignal;
  /** Aborted when nothing more is stored. */
  ended: AbortSignal;
}

/** What is remembered of an effect that is not in progress, by name and bytes. */
interface Memory {
  until: number;
  settled?: Settled & { connection: number };
  claim?: Execution['claim'];
}

/** Carries out the calls of one target: docs/bridges.md, What to do with a delivery. */
export class Worker {
  readonly #target: string;
  readonly #tools: Map<string, Tool>;
  readonly #with: Parts;
  readonly #running = new Map<string, Execution>();
  readonly #memory = new Map<string, Memory>();
  /** Tools that did not end when they were told to. */
  readonly #abandoned = new Set<Promise<unknown>>();
  #waiting: Array<() => void> = [];

  constructor(target: string, tools: Tool[], parts: Parts) {
    this.#target = target;
    this.#tools = new Map(tools.map((t) => [t.spec.tool_id, t]));
    this.#with = parts;
  }

  get target(): string {
    return this.#target;
  }

  get toolIds(): string[] {
    return [...this.#tools.keys()];
  }

  /** The number of calls in progress. */
  get running(): number {
    return this.#running.size;
  }

  /** The number of tools that did not end when they were told to. */
  get abandoned(): number {
    return this.#abandoned.size;
  }

  /** Waits until a call is not in progress any more. */
  change(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Extends all leases. */
  extend(): void {
    for (const e of this.#running.values()) e.delivery?.working();
  }

  /** Forgets settled effects that are old. */
  forget(): void {
    const now = this.#with.clock.now();
    for (const [key, { until }] of this.#memory) if (until < now) this.#memory.delete(key);
  }

  /** The session withdrew effects. */
  cancel(session: string, effects: string[]): void {
    for (const effect of effects) this.#running.get(`${session}.${effect}`)?.stop('cancelled');
  }

  /** The connection broke: the next one delivers again what is in progress. */
  disconnected(): void {
    for (const e of this.#running.values()) e.delivery = undefined;
  }

  /** Tells all calls in progress to end. */
  stop(): void {
    for (const e of this.#running.values()) e.stop('stopping');
  }

  /** Carries out a delivery, and answers it. */
  async take(m: Delivery): Promise<void> {
    const read = readEffect(m.subject, m.data);
    if ('newer' in read) {
      this.#with.log('an effect is given back, since only a newer bridge may read it', { subject: m.subject, why: read.newer });
      return m.nak(NEWER);
    }
    if ('bad' in read) {
      this.#with.log('a message that is no effect is skipped', { subject: m.subject, why: read.bad });
      return m.ack();
    }
    const e = new Execution(read.call, m);
    const known = this.#running.get(e.name);
    if (known && known.hash !== e.hash) {
      this.#with.log('the server lost an effect that is in progress: it is stopped and not settled', fieldsOf(e));
      known.delivery = undefined;
      known.stop('lost');
      return m.nak(HELD);
    }
    if (known) {
      known.delivery = m;
      return m.working();
    }
    if (this.#with.draining.aborted) return m.nak(STOPPING);
    this.#running.set(e.name, e);
    try {
      await this.#carry(e);
    } catch (error) {
      this.#with.log('a call is given back', { ...fieldsOf(e), error: String(error) });
      await this.#giveBack(e, HELD);
    } finally {
      this.#with.neighbours.leave(e);
      this.#running.delete(e.name);
      this.#waiting.splice(0).forEach((resolve) => resolve());
    }
  }

  async #carry(e: Execution): Promise<void> {
    const connection = this.#with.connection();
    const key = `${e.name}.${e.hash}`;
    const memory = this.#memory.get(key);
    e.claim = memory?.claim;
    const was = memory?.settled;
    if (was && (was.connection === connection || (await this.#isKept(was)))) return e.delivery?.ack();
    const outcome = was && !e.call.retry_safe ? unknown('it ran, and the server lost what it came to') : await this.#outcome(e);
    const until = e.call.start_by + REMEMBERED;
    if (typeof outcome === 'number') {
      if (e.claim) this.#memory.set(key, { until, claim: e.claim });
      return this.#giveBack(e, outcome);
    }
    if (outcome === 'settled') return e.delivery?.ack();
    const failed = (error: unknown) => this.#with.log('a settlement is not stored yet', { ...fieldsOf(e), error: String(error) });
    const settled = await settle(this.#with.wire, e, outcome, this.#with.by, failed, this.#with.ended);
    if (!settled) return;
    this.#memory.set(key, { until, settled: { ...settled, connection } });
    e.delivery?.ack();
  }

  /** How a call ends; `settled`: it needs nothing from us; a number: it is given back for so many milliseconds. */
  async #outcome(e: Execution): Promise<Outcome | 'settled' | number> {
    const { claims, clock } = this.#with;
    const rule = await claims.decide(e, this.#target);
    if (rule.do === 'ack') return 'settled';
    if (rule.do === 'back') return rule.ms;
    if (rule.do === 'settle') return rule.outcome;
    if (e.stopped === 'cancelled') return fail('cancelled', 'withdrawn before it started', 'cancelled');
    if (e.stopped) return e.call.retry_safe ? STOPPING : fail('cancelled', 'the bridge stopped before the call started', 'cancelled');
    if (clock.now() > e.call.start_by) return tooLate(e.call, clock.now()); // the last look at the clock
    if (claims.wasSilent(e)) return SILENT;
    const tool = this.#tools.get(e.call.tool_id);
    if (!tool) return fail('tool_not_served', `the program that serves this target has ${this.toolIds.join(', ')}, and not ${e.call.tool_id}`);
    const outcome = await e.run(tool, (ran) => {
      this.#with.log('a tool did not end when it was told to', fieldsOf(e));
      this.#abandoned.add(ran);
      void ran.finally(() => this.#abandoned.delete(ran));
    });
    return outcome ?? STOPPING;
  }

  async #giveBack(e: Execution, ms: number): Promise<void> {
    const started = this.#with.draining.aborted && e.call.retry_safe && !(e.again && !e.claim);
    if (started && e.stopped !== 'lost') {
      await this.#with.claims.release(e, this.#target).catch((error: unknown) => this.#with.log('a release is not stored', { ...fieldsOf(e), error: String(error) }));
    }
    e.delivery?.nak(ms);
  }

  /** Whether the log has a settlement that an earlier connection stored: docs/bridges.md, Redelivery and restarts. */
  async #isKept(was: Settled): Promise<boolean> {
    return (await this.#with.wire.eventHash(was.seq)) === was.hash;
  }
}

function fieldsOf(e: Execution): { session: string; effect: string } {
  const { session, effect }: ToolCall = e.call;
  return { session, effect };
}
