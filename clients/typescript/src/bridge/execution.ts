import { sha256, type ToolCall } from './effect.js';
import { CallStopped, outcomeOf, type Ended, type Outcome, type Why } from './outcome.js';
import type { CallContext, Tool } from './tool.js';

/** For a tool to end after it was told to, in milliseconds. */
export const STOP_WITHIN = 5000;

/** What a delivery can be answered with. */
export interface Delivery {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Whether the server has delivered the effect before. */
  readonly redelivered: boolean;
  ack(): void;
  nak(delayMs: number): void;
  working(): void;
}

/** One call in progress in this process. */
export class Execution {
  readonly call: ToolCall;
  /** Session and effect. */
  readonly name: string;
  /** Of the payload. */
  readonly hash: string;
  /** Our latest claim that may be stored, and the gaps in our heartbeats when it was first requested. */
  claim: { n: number; gaps: number } | undefined;
  /** The newest delivery; undefined after its connection broke. */
  delivery: Delivery | undefined;
  /** Whether the server has delivered the effect before, so that it may have been started. */
  readonly again: boolean;
  stopped: Why | undefined;
  readonly #abort = new AbortController();

  constructor(call: ToolCall, delivery: Delivery) {
    this.call = call;
    this.name = `${call.session}.${call.effect}`;
    this.hash = sha256(delivery.data);
    this.delivery = delivery;
    this.again = delivery.redelivered;
  }

  /** Aborted when the call is told to end. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Tells the call to end. The first reason counts, except that a lost effect is never settled. */
  stop(why: Why): void {
    if (why === 'lost') this.stopped = why;
    if (this.stopped && this.stopped !== why) return;
    this.stopped = why;
    this.#abort.abort(new CallStopped(why));
  }

  /**
   * Runs the tool for at most run_ms, and gives it five seconds to end after it was told to.
   * abandoned is called with the tool's promise if it does not. undefined: the call is given
   * back.
   */
  async run(tool: Tool, abandoned: (tool: Promise<unknown>) => void): Promise<Outcome | undefined> {
    const { call, signal } = this;
    const began = performance.now();
    const timer = setTimeout(() => this.stop('run_ms'), call.run_ms);
    let late: NodeJS.Timeout | undefined;
    const given = new Promise<Ended>((resolve) => {
      signal.addEventListener('abort', () => { late = setTimeout(resolve, STOP_WITHIN, 'abandoned'); }, { once: true });
    });
    const ran = tool.call(call.arguments, this.#context()).then((returned): Ended => ({ returned }), (threw: unknown): Ended => ({ threw }));
    const ended = await Promise.race([ran, given]);
    clearTimeout(timer);
    clearTimeout(late);
    if (ended === 'abandoned') abandoned(ran);
    const outcome = outcomeOf(call, ended, this.stopped);
    return outcome && { ...outcome, durationMs: Math.round(performance.now() - began) };
  }

  #context(): CallContext {
    const { session, effect, tool_id, idempotency_key, retry_safe, run_ms, context } = this.call;
    return {
      signal: this.signal, idempotencyKey: idempotency_key, session, effect, toolId: tool_id, retrySafe: retry_safe ?? false, runMs: run_ms,
      ...(context === undefined ? {} : { context }),
    };
  }
}
