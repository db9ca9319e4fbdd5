import { createHash } from 'node:crypto';
import { decode } from '@msgpack/msgpack';

/** A call as a session published it: docs/bridges.md, The effect. */
export interface ToolCall {
  readonly v: 1;
  readonly class: 'tool';
  readonly session: string;
  readonly effect: string;
  readonly tool_id: string;
  readonly tool_name: string;
  /** JSON of an object. */
  readonly arguments: string;
  /** Unix milliseconds of the server, as start_by. */
  readonly at: number;
  readonly start_by: number;
  readonly run_ms: number;
  readonly batch: string;
  readonly call: number;
  readonly idempotency_key: string;
  readonly plan_hash: Uint8Array;
  readonly retry_safe?: boolean;
  readonly context?: unknown;
}

type Kind = 'text' | 'integer' | 'hash' | 'boolean' | 'any';

const FIELDS: Record<string, Kind> = {
  v: 'integer', class: 'text', session: 'text', effect: 'text', tool_id: 'text', tool_name: 'text', arguments: 'text',
  at: 'integer', start_by: 'integer', run_ms: 'integer', batch: 'text', call: 'integer', idempotency_key: 'text', plan_hash: 'hash',
};
const OPTIONAL: Record<string, Kind> = {
  retry_safe: 'boolean', provider_call_id: 'text', host_session: 'any', context: 'any', spaces: 'any', grants: 'any',
};

const fits: Record<Kind, (value: unknown) => boolean> = {
  text: (value) => typeof value === 'string',
  integer: Number.isSafeInteger,
  hash: (value) => value instanceof Uint8Array && value.length === 32,
  boolean: (value) => typeof value === 'boolean',
  any: () => true,
};

/** The call, or why it can't be read: only a newer bridge may, or nobody. */
export type Read = { call: ToolCall } | { newer: string } | { bad: string };

/** Reads the payload of a delivery. Its last two tokens of the subject name the effect. */
export function readEffect(subject: string, payload: Uint8Array): Read {
  let map: unknown;
  try {
    map = decode(payload);
  } catch (error) {
    return { bad: String(error) };
  }
  if (map === null || typeof map !== 'object' || Array.isArray(map) || map instanceof Uint8Array) return { bad: 'it is no map' };
  const fields = map as Record<string, unknown>;
  if (Number.isInteger(fields['v']) && fields['v'] !== 1) return { newer: `its version is ${fields['v']}` };
  const unknown = Object.keys(fields).find((field) => !(field in FIELDS) && !(field in OPTIONAL));
  if (unknown !== undefined) return { newer: `it has the field ${unknown}` };
  for (const [field, kind] of Object.entries(FIELDS)) if (!fits[kind](fields[field])) return { bad: `its ${field} is missing, or no ${kind}` };
  for (const [field, kind] of Object.entries(OPTIONAL)) if (field in fields && !fits[kind](fields[field])) return { bad: `its ${field} is no ${kind}` };
  const call = fields as unknown as ToolCall;
  const [session, effect] = subject.split('.').slice(-2);
  const name = effect!.split('-')[0]; // r1t1c0-LOG, if another system has an effect of the name
  if (call.class !== 'tool' || call.session !== session || call.effect !== name) return { bad: 'it is not of its subject' };
  if (call.run_ms <= 0) return { bad: `its run_ms is ${call.run_ms}` };
  return { call };
}

/** SHA-256 in hex. */
export function sha256(data: Uint8Array | string): string {
  return createHash('sha256').update(data).digest('hex');
}
