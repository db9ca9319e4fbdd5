/** Two clocks of this machine, in milliseconds: one that shows the time, and one that nobody can set. */
export interface Time {
  shown(): number;
  running(): number;
}

export const machine: Time = { shown: () => Date.now(), running: () => performance.now() };

/** A clock that is further off is reported, and a larger step is measured at once, in milliseconds. */
const OFF_MAX = 1000;
const EVERY = 60_000;
const TICK = 1000;
/** After a measurement that failed. */
const AGAIN = 5000;

/**
 * The NATS server's time, with which start_by and at are compared: docs/bridges.md, Time.
 * Until it is measured it is this machine's.
 */
export class ServerClock {
  readonly #time: Time;
  readonly #ask: () => Promise<number>;
  readonly #log: (message: string, fields: Record<string, unknown>) => void;
  #server: number;
  #shown: number;
  #at: number;
  #ahead = 0;
  #due: number;
  #timer: NodeJS.Timeout | undefined;
  #told = false;

  /** ask returns the server's time in Unix milliseconds. */
  constructor(ask: () => Promise<number>, log: (message: string, fields: Record<string, unknown>) => void, time: Time = machine) {
    this.#time = time;
    this.#ask = ask;
    this.#log = log;
    this.#server = this.#shown = time.shown();
    this.#at = this.#due = time.running();
  }

  /** Unix milliseconds. */
  now(): number {
    return this.#server + this.#time.running() - this.#at;
  }

  /** By how many milliseconds this machine's clock is ahead, for heartbeats; 0 if it is right. */
  aheadMs(): number {
    return Math.abs(this.#ahead) > OFF_MAX ? Math.round(this.#ahead) : 0;
  }

  /** Measures now, and from then on each minute and after each step, until end is called. */
  async start(): Promise<void> {
    await this.look();
    this.#timer = setInterval(() => void this.look(), TICK);
  }

  end(): void {
    clearInterval(this.#timer);
  }

  /** Measures if it is time. */
  async look(): Promise<void> {
    const running = this.#time.running();
    const step = this.#time.shown() - this.#shown - (running - this.#at);
    if (running < this.#due && Math.abs(step) <= OFF_MAX) return;
    this.#due = running + EVERY;
    try {
      await this.#measure();
    } catch (error) {
      this.#due = running + AGAIN;
      this.#log('the clock was not measured', { error: String(error) });
    }
  }

  async #measure(): Promise<void> {
    const asked = this.#time.running();
    const server = await this.#ask();
    const answered = this.#time.running();
    this.#server = server + (answered - asked) / 2;
    this.#at = answered;
    this.#shown = this.#time.shown();
    this.#ahead = this.#shown - this.#server;
    const off = this.aheadMs() !== 0;
    if (off && !this.#told) this.#log("this machine's clock differs from the NATS server's: set both by NTP", { ahead_ms: this.aheadMs() });
    this.#told = off;
  }
}
