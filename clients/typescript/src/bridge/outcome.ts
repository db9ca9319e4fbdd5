import type { ToolCall } from './effect.js';
import { messageOf } from './schema.js';
import { ToolError, ToolResult, UnknownOutcomeError, type ResultFile } from './tool.js';

/** How a call ended, before its settlement is made. */
export interface Outcome {
  readonly status: 'succeeded' | 'failed' | 'cancelled' | 'outcome_unknown';
  readonly error?: { code: string; detail: string; retryable?: boolean };
  readonly text?: string;
  readonly files?: ResultFile[];
  readonly durationMs?: number;
}

/** Why a call was told to end. */
export type Why = 'cancelled' | 'run_ms' | 'stopping' | 'lost';

/** The reason of a call's signal. */
export class CallStopped extends Error {
  override readonly name = 'CallStopped';
  readonly why: Why;

  constructor(why: Why) {
    super({
      cancelled: 'the session withdrew the call', run_ms: 'the run time of the call is over',
      stopping: 'the bridge stops', lost: 'the server lost the call',
    }[why]);
    this.why = why;
  }
}

/** After so long the server may have forgotten a claim, in milliseconds. */
const CLAIMS_KEPT = 45 * 60_000;
const FILES_MAX = 63;

export function fail(code: string, detail: string, status: Outcome['status'] = 'failed'): Outcome {
  return { status, error: { code, detail } };
}

export function unknown(detail: string): Outcome {
  return fail('outcome_unknown', detail, 'outcome_unknown');
}

/** Of a call whose start_by has passed. */
export function tooLate(call: ToolCall, now: number): Outcome {
  if (!call.retry_safe && now - call.at > CLAIMS_KEPT) {
    return unknown('it was asked so long ago that a claim of it may be forgotten: it may have taken effect');
  }
  return fail('deadline_exceeded', 'no bridge started it in time');
}

/** What a tool returned, threw, or did not do in time. */
export type Ended = { returned: unknown } | { threw: unknown } | 'abandoned';

/** The outcome of a tool that has ended; undefined: the call is given back, and runs elsewhere. */
export function outcomeOf(call: ToolCall, ended: Ended, stopped: Why | undefined): Outcome | undefined {
  if (stopped && call.retry_safe) return stoppedSafely(call, stopped);
  const threw = ended !== 'abandoned' && 'threw' in ended ? ended.threw : undefined;
  if (stopped && threw instanceof ToolError) return stoppedSafely({ ...call, retry_safe: true }, stopped) ?? failure(call, threw);
  if (stopped) return { ...(ended !== 'abandoned' && 'returned' in ended ? result(call, ended.returned) : {}), ...unknown(`stopped while it ran, it may have taken effect: ${new CallStopped(stopped).message}`) };
  if (ended === 'abandoned') throw new Error('a call that nobody stopped was abandoned');
  return 'returned' in ended ? result(call, ended.returned) : failure(call, ended.threw);
}

/** Of a call that did no harm. */
function stoppedSafely(call: ToolCall, why: Why): Outcome | undefined {
  switch (why) {
    case 'cancelled': return fail('cancelled', 'withdrawn while it ran', 'cancelled');
    case 'run_ms': return fail('deadline_exceeded', `it ran for longer than ${call.run_ms} ms`);
    default: return undefined;
  }
}

function failure(call: ToolCall, error: unknown): Outcome {
  if (error instanceof ToolError) {
    const { code, message: detail, retryable } = error;
    return { status: 'failed', error: retryable ? { code, detail, retryable } : { code, detail } };
  }
  if (error instanceof UnknownOutcomeError) return unknown(`it may have taken effect: ${error.message}`);
  if (call.retry_safe) return fail('executor_error', messageOf(error));
  return unknown(`the tool failed in the middle of its work, it may have taken effect: ${messageOf(error)}`);
}

function result(call: ToolCall, value: unknown): Outcome {
  if (value === undefined || value === null) return { status: 'succeeded' };
  if (typeof value === 'string') return { status: 'succeeded', text: value };
  if (value instanceof Uint8Array) return ofBytes(value);
  if (value instanceof ToolResult) return ofResult(value);
  try {
    const text = JSON.stringify(value);
    if (text === undefined) throw new TypeError(`a ${typeof value}`);
    return { status: 'succeeded', text };
  } catch (error) {
    const detail = `it ran, and what it returned has no form in JSON: ${messageOf(error)}`;
    return fail('result_unreadable', detail, call.retry_safe ? 'failed' : 'outcome_unknown');
  }
}

function ofResult({ text, files }: ToolResult): Outcome {
  if (files.length <= FILES_MAX) return { status: 'succeeded', text, files };
  const left = `[${files.length - FILES_MAX} more files are left out: at most ${FILES_MAX} are kept]`;
  return { status: 'succeeded', text: text ? `${text}\n${left}` : left, files: files.slice(0, FILES_MAX) };
}

function ofBytes(data: Uint8Array): Outcome {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(data);
    if (!text.includes('\0')) return { status: 'succeeded', text };
  } catch {
    // no text
  }
  return { status: 'succeeded', files: [{ data, mediaType: 'application/octet-stream' }] };
}
