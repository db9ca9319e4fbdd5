import { machine, type Time } from './clock.js';

/** How long an instance is silent before it is gone, in milliseconds. */
export const GONE_AFTER = 5000;
/** Between two of our own heartbeats; more is a gap. */
const GAP_MAX = 2000;
/** Silent instances are forgotten. */
const KEPT = 600_000;

interface Moment { shown: number; running: number }

/**
 * Tells which instances are alive, by their heartbeats: docs/bridges.md, The rule table.
 * A process listens as long as it hears itself, so a broken connection or a frozen process
 * does not look like the death of another.
 */
export class Detector {
  readonly #self: string;
  readonly #time: Time;
  readonly #heard = new Map<string, Moment>();
  #own: Moment;
  /** When listening without a gap began. */
  #since: Moment | undefined;
  #gaps = 0;

  constructor(self: string, time: Time = machine) {
    this.#self = self;
    this.#time = time;
    this.#own = this.#now();
  }

  /** Records a heartbeat. */
  heard(instance: string): void {
    const now = this.#now();
    if (instance === this.#self) {
      if (this.#between(this.#own, now) > GAP_MAX) {
        this.#gaps++;
        this.#since = undefined;
      }
      this.#since ??= now;
      this.#own = now;
      return;
    }
    if (!this.#heard.has(instance)) {
      for (const [other, at] of this.#heard) if (this.#between(at, now) > KEPT) this.#heard.delete(other);
    }
    this.#heard.set(instance, now);
  }

  /** Says whether an instance is alive or gone, or for how many milliseconds we must go on listening. */
  state(instance: string | undefined): 'alive' | 'gone' | number {
    const now = this.#now();
    const at = instance === undefined ? undefined : this.#heard.get(instance);
    if (instance === this.#self || at && now.running - at.running < GONE_AFTER) return 'alive';
    if (!this.#since || this.#between(this.#own, now) > GAP_MAX) return GONE_AFTER;
    const left = GONE_AFTER - (now.running - this.#since.running);
    return left > 0 ? left : 'gone';
  }

  /** The number of gaps in our own heartbeats so far. */
  get gaps(): number {
    return this.#gaps;
  }

  /** Whether our heartbeats arrive, without a gap since the number was gaps: then nobody believes us gone. */
  heardSince(gaps: number): boolean {
    return this.#gaps === gaps && this.hearsItself();
  }

  /** Whether our heartbeats arrive now. */
  hearsItself(): boolean {
    return this.#between(this.#own, this.#now()) <= GAP_MAX;
  }

  #now(): Moment {
    return { shown: this.#time.shown(), running: this.#time.running() };
  }

  /** The clock that can't be set stands still while the machine is suspended, so the longer of the two counts. */
  #between(from: Moment, to: Moment): number {
    return Math.max(to.running - from.running, to.shown - from.shown);
  }
}
