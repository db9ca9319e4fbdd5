import { setTimeout as pause } from 'node:timers/promises';
import { sha256, type ToolCall } from './effect.js';
import type { Execution } from './execution.js';
import { fail, type Outcome } from './outcome.js';
import type { ResultFile } from './tool.js';

/** In an event, in bytes. */
const INLINE_MAX = 256 * 1024;
const INLINE_SLIM = 4 * 1024;
const EVENT_MAX = 768 * 1024;
/** What a message has besides the event. */
const HEADERS_MAX = 1024;
const CODE = /^[a-z0-9_]{1,64}$/;
const DETAIL_MAX = 256;
const NAME_MAX = 128;
/** Between two attempts to store a settlement, in milliseconds. */
const WAIT_MIN = 100;
const WAIT_MAX = 5000;

interface Content { text?: string; blob?: string; media_type?: string; name?: string; size?: number; parts?: Content[] }

/** What settlements need of the server. */
export interface SettlementWire {
  settle(session: string, id: string, event: string): Promise<number>;
  putBlob(data: Uint8Array): Promise<string>;
  /** The size of a message on this server, in bytes. */
  readonly payloadMax: number;
}

/** Where a settlement is in the log, and SHA-256 of it. */
export interface Settled { seq: number; hash: string }

/**
 * Stores the settlement of a call: docs/bridges.md, Settlements. It tries until that
 * succeeds; undefined: the server lost the call, or signal was aborted.
 */
export async function settle(
  wire: SettlementWire, e: Execution, outcome: Outcome, by: string, failed: (error: unknown) => void, signal: AbortSignal,
): Promise<Settled | undefined> {
  const at = Date.now();
  for (let wait = WAIT_MIN; e.stopped !== 'lost' && !signal.aborted; wait = Math.min(2 * wait, WAIT_MAX)) {
    try {
      const event = await eventOf(wire, e.call, outcome, by, at);
      const hash = sha256(event);
      return { seq: await wire.settle(e.call.session, `${e.name}.${hash}`, event), hash };
    } catch (error) {
      failed(error);
      await pause(wait, undefined, { signal }).catch(() => {});
    }
  }
  return undefined;
}

/** The event of an outcome, with large texts in blobs. */
async function eventOf(wire: SettlementWire, call: ToolCall, outcome: Outcome, by: string, at: number): Promise<string> {
  const most = Math.min(EVENT_MAX, wire.payloadMax - HEADERS_MAX);
  for (const inline of [INLINE_MAX, INLINE_SLIM]) {
    const event = JSON.stringify({ type: 'ToolCallSettled', v: 1, at, by, data: await dataOf(wire, call, outcome, inline) });
    if (Buffer.byteLength(event) <= most) return event;
  }
  const small = fail('answer_too_large', `the server's max_payload is ${wire.payloadMax} bytes: raise it to 1 MiB`, outcome.status === 'succeeded' ? 'failed' : outcome.status);
  return JSON.stringify({ type: 'ToolCallSettled', v: 1, at, by, data: await dataOf(wire, call, small, INLINE_SLIM) });
}

async function dataOf(wire: SettlementWire, call: ToolCall, outcome: Outcome, inline: number): Promise<object> {
  const { status, error, durationMs } = outcome;
  const output = await outputOf(wire, outcome, inline);
  return {
    effect: call.effect, status, plan_hash: Buffer.from(call.plan_hash).toString('hex'),
    ...(output ? { output } : {}),
    ...(error ? { error: faultOf(error) } : {}),
    ...(durationMs ? { duration_ms: durationMs } : {}),
  };
}

/** A session takes no code of another form. */
function faultOf(error: NonNullable<Outcome['error']>): object {
  const [code, detail] = CODE.test(error.code) ? [error.code, error.detail] : ['executor_error', `${error.code}: ${error.detail}`];
  return { ...error, code, detail: clip(detail, DETAIL_MAX) };
}

async function outputOf(wire: SettlementWire, { text, files = [] }: Outcome, inline: number): Promise<Content | undefined> {
  const parts: Content[] = [];
  if (text) parts.push(await contentOf(wire, text, inline));
  for (const file of files) parts.push(await fileOf(wire, file));
  return parts.length > 1 ? { parts } : parts[0];
}

async function contentOf(wire: SettlementWire, text: string, inline: number): Promise<Content> {
  const data = new TextEncoder().encode(text);
  if (data.length <= inline) return { text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(data) }; // half characters are replaced
  return { blob: await wire.putBlob(data), media_type: 'text/plain; charset=utf-8', size: data.length };
}

async function fileOf(wire: SettlementWire, { data, mediaType, name }: ResultFile): Promise<Content> {
  const blob = await wire.putBlob(data);
  return { blob, media_type: clip(mediaType, NAME_MAX), size: data.length, ...(name ? { name: clip(name, NAME_MAX) } : {}) };
}

/** Cuts a text to so many bytes of UTF-8, between two characters. */
function clip(text: string, bytes: number): string {
  const data = new TextEncoder().encode(text);
  if (data.length <= bytes) return new TextDecoder('utf-8', { ignoreBOM: true }).decode(data);
  let end = bytes;
  while ((data[end]! & 0xc0) === 0x80) end--;
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(data.subarray(0, end));
}
