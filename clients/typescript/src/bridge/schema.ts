/**
 * What the schemas of zod, valibot, arktype and others have in common:
 * https://standardschema.dev. Those that describe themselves as JSON Schema have `jsonSchema`.
 */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: { readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown> };
  };
}

/** A value that fits, or why it does not. */
export type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: ReadonlyArray<Issue> };

export interface Issue {
  readonly message: string;
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined;
}

/** The type of a value that a schema has validated. */
export type OutputOf<S extends Schema> = NonNullable<S['~standard']['types']>['output'];

/** A JSON Schema of an object, 2020-12. */
export type JSONSchema = Record<string, unknown>;

/** How to get a JSON Schema from those libraries that have it elsewhere. */
const HINTS: Record<string, string> = {
  valibot: 'wrap it in toStandardJsonSchema of @valibot/to-json-schema',
  zod: 'use zod 4.2 or later',
  arktype: 'use arktype 2.1.28 or later',
};

/** Returns the JSON Schema of what a schema takes. The error says what to do if it gives none. */
export function jsonSchemaOf(schema: Schema): JSONSchema {
  const { vendor, jsonSchema } = schema['~standard'];
  if (!jsonSchema) {
    const hint = HINTS[vendor];
    throw new Error(`the schema of ${vendor} gives no JSON Schema: ${hint ? `${hint}, or ` : ''}give the option jsonSchema`);
  }
  let made: JSONSchema;
  try {
    made = jsonSchema.input({ target: 'draft-2020-12' });
  } catch (error) {
    throw new Error(`the schema of ${vendor} has no JSON Schema (${messageOf(error)}): use types that JSON has, or give the option jsonSchema`);
  }
  const { $schema: _, ...rest } = made;
  return rest;
}

/** Says in one line why arguments do not fit: `/city: Required; /days: Too big`. */
export function describe(issues: ReadonlyArray<Issue>): string {
  return issues.map(({ message, path = [] }) => {
    const at = path.map((part) => `/${String(typeof part === 'object' ? part.key : part)}`).join('');
    return at ? `${at}: ${message}` : message;
  }).join('; ');
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
