import { describe, jsonSchemaOf, messageOf, type JSONSchema, type OutputOf, type Schema } from './schema.js';

/** What a tool learns of its call. */
export interface CallContext {
  /** Aborted when the tool must end: the session withdrew the call, its time is over, or the bridge stops. */
  readonly signal: AbortSignal;
  /** The same at every start of this call. Pass it on to what the tool calls. */
  readonly idempotencyKey: string;
  readonly session: string;
  /** The call's name in the session, such as r1t2c0. */
  readonly effect: string;
  readonly toolId: string;
  readonly retrySafe: boolean;
  /** How long this start may take, in milliseconds. */
  readonly runMs: number;
  /** The run's context, if step rules have set one. */
  readonly context?: unknown;
}

export interface ToolOptions<S extends Schema> {
  /** The schema of the arguments: an object of zod, valibot, arktype or another Standard Schema. */
  input: S;
  /** The JSON Schema that models are shown, if `input` gives none, or another. */
  jsonSchema?: JSONSchema;
  /** For the model. */
  description?: string;
  /** The name for models; if absent, the id with _ for dots. */
  name?: string;
  /** What bridges serve; if absent, the first part of the id. */
  target?: string;
  /** A call may run twice, with one idempotency key. Without it a call is started at most once. */
  retrySafe?: boolean;
  /** Calls may run concurrently with others of a turn. */
  parallelSafe?: boolean;
  /** Calls change nothing. */
  readOnly?: boolean;
  /** The resource that a call uses: orders:{id}, where {id} is an argument. */
  resourceKey?: string;
  resourceKind?: 'text' | 'path';
  /** Capabilities that the install record must grant. */
  requires?: string[];
  /** Which calls wait for a person: always, never, or a condition (CEL) such as args.amount > 100. */
  approval?: string;
  /** How long one start may take, in milliseconds; five minutes if absent. */
  deadlineMs?: number;
}

/**
 * Carries out a call. The model is shown what it returns: a string as it is, nothing for
 * undefined, bytes and a ToolResult as text and files, anything else as JSON.
 */
export type ToolFunction<S extends Schema> = (input: OutputOf<S>, ctx: CallContext) => unknown;

/** A failure that the tool names, after which nothing has taken effect. */
export class ToolError extends Error {
  override readonly name = 'ToolError';
  /** Lower-case words joined by _, at most 64 bytes. */
  readonly code: string;
  readonly retryable: boolean;

  constructor(code: string, detail: string, options: { retryable?: boolean } = {}) {
    super(detail);
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

/** The call may have taken effect, and the tool can't tell: the model is told so. */
export class UnknownOutcomeError extends Error {
  override readonly name = 'UnknownOutcomeError';
}

/** A file of a result. */
export interface ResultFile {
  data: Uint8Array;
  mediaType: string;
  name?: string;
}

/** A text with files, at most 63. */
export class ToolResult {
  readonly text: string;
  readonly files: ResultFile[];

  constructor(text: string, files: ResultFile[] = []) {
    this.text = text;
    this.files = files;
  }
}

/** A tool as registries and install records have it. */
export interface ToolSpec {
  tool_id: string;
  tool_name: string;
  description?: string;
  args_schema: JSONSchema;
  executor: { kind: 'effect'; target: string };
  retry_safe?: true;
  parallel_safe?: true;
  access?: 'read';
  resource_key?: string;
  resource_kind?: 'text' | 'path';
  requires?: string[];
  approval?: string;
  deadline_ms?: number;
}

/** A function as a tool. */
export interface Tool {
  readonly spec: ToolSpec;
  /** Checks arguments, JSON text, and calls the function. */
  readonly call: (args: string, ctx: CallContext) => Promise<unknown>;
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const TOOL_ID = /^(?=.{1,128}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/;

/** Makes a function a tool. An error says what is wrong with its definition. */
export function tool<S extends Schema>(id: string, options: ToolOptions<S>, fn: ToolFunction<S>): Tool {
  const problem = (text: string) => new TypeError(`tool ${id}: ${text}`);
  const name = options.name ?? id.replaceAll('.', '_');
  const target = options.target ?? id.split('.')[0]!;
  if (!TOOL_ID.test(id)) throw problem('its id is not 1 to 128 of A-Za-z0-9_- with single dots between');
  if (!NAME.test(name)) throw problem(`its name ${name} is not 1 to 64 of A-Za-z0-9_-: give the option name`);
  if (!NAME.test(target)) throw problem(`its target ${target} is not 1 to 64 of A-Za-z0-9_-`);
  if (!options.input?.['~standard']) throw problem('its input is no Standard Schema, such as z.object({…}) of zod');
  if (typeof fn !== 'function') throw problem('it has no function');
  const { deadlineMs } = options;
  if (deadlineMs !== undefined && !(Number.isSafeInteger(deadlineMs) && deadlineMs > 0)) throw problem('its deadlineMs is no positive integer');
  let schema: JSONSchema;
  try {
    schema = options.jsonSchema ?? jsonSchemaOf(options.input);
  } catch (error) {
    throw problem(messageOf(error));
  }
  if (schema['type'] !== 'object') throw problem('its input is no object: arguments have names');
  const spec: ToolSpec = { tool_id: id, tool_name: name, args_schema: schema, executor: { kind: 'effect', target } };
  if (options.description) spec.description = options.description;
  if (options.retrySafe) spec.retry_safe = true;
  if (options.parallelSafe) spec.parallel_safe = true;
  if (options.readOnly) spec.access = 'read';
  if (options.resourceKey) spec.resource_key = options.resourceKey;
  if (options.resourceKind) spec.resource_kind = options.resourceKind;
  if (options.requires) spec.requires = options.requires;
  if (options.approval) spec.approval = options.approval;
  if (deadlineMs) spec.deadline_ms = deadlineMs;
  return { spec, call: async (args, ctx) => fn(await validate(options.input, args), ctx) };
}

async function validate<S extends Schema>(schema: S, args: string): Promise<OutputOf<S>> {
  const validated = await schema['~standard'].validate(JSON.parse(args || '{}'));
  if (validated.issues) throw new ToolError('invalid_arguments', describe(validated.issues));
  return validated.value;
}

/** The tools as a registry of their own, which replaces a session's. */
export function registry(tools: Tool[]): { tools: ToolSpec[] } {
  return { tools: tools.map((t) => t.spec) };
}

interface Profile { tools?: string[] }

/**
 * Returns an install record with tools added, for `refold install -`: a tool replaces the
 * one with its tool_id, and any other is added at the end of every profile. The record is
 * what `refold install --show` prints.
 */
export function installRecord(record: Record<string, unknown>, tools: Tool[]): Record<string, unknown> {
  const all = [...((record['tools'] ?? []) as ToolSpec[])];
  const added: string[] = [];
  for (const { spec } of tools) {
    const at = all.findIndex((t) => t.tool_id === spec.tool_id);
    if (at >= 0) all[at] = spec;
    else {
      all.push(spec);
      added.push(spec.tool_id);
    }
  }
  const made: Record<string, unknown> = { v: 1, rules: 1, ...record, tools: all };
  const profiles = record['profiles'] as Profile[] | undefined;
  if (profiles) made['profiles'] = profiles.map((p) => ({ ...p, tools: [...(p.tools ?? []), ...added] }));
  return made;
}
