import type { ServerClock } from './clock.js';
import type { Detector } from './detector.js';
import type { Execution } from './execution.js';
import type { Kind, Neighbours } from './neighbours.js';
import { fail, tooLate, unknown, type Outcome } from './outcome.js';
import { within } from './wait.js';

/** A claim, as it is stored. `foreign`: it names another log. */
export interface Claim {
  by?: string;
  withdrawn?: boolean;
  released?: boolean;
  hash?: string;
  foreign?: boolean;
}

/** A session's view, as far as it is read here. */
export interface View {
  /** Unix milliseconds of the session's latest event. */
  clock: number;
  /** The effects that are open. */
  open: string[];
}

/** What claims need of the server. Each fails if nobody can tell what happened. */
export interface ClaimWire {
  /** Stores the nth claim of a call if there is none, and returns the one that stands. */
  claim(target: string, name: string, n: number, claim: Claim): Promise<Claim>;
  view(session: string): Promise<View>;
}

/** What to do with a delivery. */
export type Rule = { do: 'run' } | { do: 'ack' } | { do: 'back'; ms: number } | { do: 'settle'; outcome: Outcome };

/** Before an effect is delivered again, in milliseconds. */
export const HELD = 2000;
export const STOPPING = 100;
const ISOLATED = 30_000;
const SILENT = 500;
/** In a slot until others have ended, beside which a call must not run. */
const ISOLATE_WAIT = 10_000;
/** So many processes may die of a call. */
const DEATHS_MAX = 3;
const CLAIMS_MAX = 100;
/** A retry-safe call that is older is started only if it is open. */
const FRESH = 1000;

/** Decides which calls may run here: docs/bridges.md, Claims. */
export class Claims {
  readonly #instance: string;
  readonly #wire: ClaimWire;
  readonly #detector: Detector;
  readonly #neighbours: Neighbours;
  readonly #clock: Pick<ServerClock, 'now'>;
  readonly #draining: AbortSignal;

  /** draining is aborted when this process starts nothing more. */
  constructor(instance: string, wire: ClaimWire, detector: Detector, neighbours: Neighbours, clock: Pick<ServerClock, 'now'>, draining: AbortSignal) {
    this.#instance = instance;
    this.#wire = wire;
    this.#detector = detector;
    this.#neighbours = neighbours;
    this.#clock = clock;
    this.#draining = draining;
  }

  /** Says whether a call may run. It fails if nobody can tell: give it back. */
  async decide(e: Execution, target: string): Promise<Rule> {
    if (e.call.retry_safe && this.#late(e)) return { do: 'settle', outcome: tooLate(e.call, this.#clock.now()) };
    if (!e.call.retry_safe || e.again) return this.#claim(e, target);
    if (!(await this.#stillWanted(e))) return { do: 'ack' };
    return (await this.#isolate(e, 'harmless')) ?? { do: 'run' };
  }

  /** Says, right before the start, whether others may have believed us gone since we claimed. */
  wasSilent(e: Execution): boolean {
    return e.claim !== undefined && !this.#detector.heardSince(e.claim.gaps);
  }

  /** Stores that a retry-safe call is given back in order: the end of this process is then no death by it. */
  async release(e: Execution, target: string): Promise<void> {
    const released: Claim = { by: this.#instance, hash: e.hash, released: true };
    for (let n = (e.claim?.n ?? 0) + 1; n <= CLAIMS_MAX; n++) {
      const stands = await this.#wire.claim(target, e.name, n, released);
      if (stands.released && stands.by === this.#instance && stands.hash === e.hash) return;
    }
  }

  #late(e: Execution): boolean {
    return this.#clock.now() > e.call.start_by;
  }

  /** Follows the rule table, claim after claim. */
  async #claim(e: Execution, target: string): Promise<Rule> {
    const deaths = new Deaths(e.call.retry_safe ?? false);
    for (let n = 1; n <= CLAIMS_MAX; n++) {
      const late = this.#late(e);
      if (late && e.call.retry_safe) return { do: 'settle', outcome: tooLate(e.call, this.#clock.now()) };
      const apart = late ? undefined : await this.#isolate(e, e.call.retry_safe ? deaths.kind : 'fragile');
      if (apart) return apart;
      if (!e.claim || e.claim.n < n) e.claim = { n, gaps: this.#detector.gaps };
      const wanted: Claim = late ? { withdrawn: true, hash: e.hash } : { by: this.#instance, hash: e.hash };
      const stands = await this.#wire.claim(target, e.name, n, wanted);
      const other = stands.foreign || stands.hash !== undefined && stands.hash !== e.hash;
      const ours = !other && !stands.withdrawn && !stands.released && stands.by === this.#instance;
      if (!ours && e.claim.n === n) e.claim = undefined;
      if (other) continue;
      if (stands.withdrawn) return late ? { do: 'settle', outcome: tooLate(e.call, this.#clock.now()) } : { do: 'ack' };
      if (stands.released) deaths.released(stands.by);
      else if (ours) return deaths.count >= DEATHS_MAX ? { do: 'settle', outcome: bridgeLost(deaths.count) } : this.#afterSilence(e);
      else {
        const state = this.#detector.state(stands.by);
        if (state === 'alive') return { do: 'back', ms: HELD };
        if (state !== 'gone') return { do: 'back', ms: Math.max(state, SILENT) };
        if (!e.call.retry_safe) return { do: 'settle', outcome: unknown('the bridge that ran this call is gone: it may have taken effect') };
        deaths.add(stands.by);
      }
    }
    return { do: 'back', ms: HELD };
  }

  /** If others may have answered for a call that we claimed, it runs only if it is open. */
  async #afterSilence(e: Execution): Promise<Rule> {
    if (!this.wasSilent(e)) return { do: 'run' };
    const gaps = this.#detector.gaps;
    const view = await this.#wire.view(e.call.session);
    if (!view.open.includes(e.call.effect)) return view.clock > e.call.at ? { do: 'ack' } : { do: 'back', ms: HELD };
    e.claim = { n: e.claim!.n, gaps }; // of our heartbeats before the view
    return this.wasSilent(e) ? { do: 'back', ms: SILENT } : { do: 'run' };
  }

  /** A first start has no claim that would say that the session withdrew it. Without a view it starts. */
  async #stillWanted(e: Execution): Promise<boolean> {
    if (this.#clock.now() - e.call.at <= FRESH) return true;
    const view = await this.#wire.view(e.call.session).catch(() => undefined);
    return !view || view.clock <= e.call.at || view.open.includes(e.call.effect);
  }

  /** Waits until a call may run beside the others of this process; a rule if that takes too long. */
  async #isolate(e: Execution, kind: Kind): Promise<Rule | undefined> {
    if (e.signal.aborted) return undefined; // it won't start
    const given = this.#neighbours.enter(e, kind).then(() => true);
    if (await within(given, ISOLATE_WAIT, e.signal, this.#draining)) return undefined;
    this.#neighbours.leave(e);
    if (e.signal.aborted) return undefined;
    if (this.#draining.aborted) return { do: 'back', ms: STOPPING };
    const left = Math.max(0, e.call.start_by - this.#clock.now());
    return { do: 'back', ms: Math.min(kind === 'killer' ? ISOLATED : HELD, left) };
  }
}

/** The processes that died of a call. A retry-safe call's first start has no claim: its process is nameless. */
class Deaths {
  readonly #of = new Set<string>();
  #nameless: boolean;

  constructor(nameless: boolean) {
    this.#nameless = nameless;
  }

  get count(): number {
    return this.#of.size + (this.#nameless ? 1 : 0);
  }

  get kind(): Kind {
    return this.count >= 2 ? 'killer' : this.count === 1 ? 'suspect' : 'harmless';
  }

  /** An instance may have stored several claims, and counts once. */
  add(instance = ''): void {
    this.#of.add(instance);
  }

  released(instance = ''): void {
    if (!this.#of.delete(instance)) this.#nameless = false;
  }
}

function bridgeLost(deaths: number): Outcome {
  return fail('bridge_lost', `the program that runs this tool died ${deaths} times while it ran this call. The call probably caused that: do not repeat it as it is, ask for less or use another way`);
}
