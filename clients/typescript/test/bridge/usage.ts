// What programs may write: npm test checks its types, and nobody runs it.
import { installRecord, serve, tool, ToolError, ToolResult, type Tool } from '@refold/client/bridge';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';

const get = tool('weather.get', { input: z.object({ city: z.string(), days: z.int().default(1) }), retrySafe: true }, async ({ city, days }, ctx) => {
  const answer = await fetch(`https://example.com/${city}`, { signal: ctx.signal, headers: { 'Idempotency-Key': ctx.idempotencyKey } });
  if (!answer.ok) throw new ToolError('no_weather', `${answer.status}`, { retryable: answer.status === 503 });
  return `${await answer.text()} for ${days.toFixed()} days`;
});

const tools: Tool[] = [
  get,
  tool('weather.map', { input: type({ zoom: 'number' }) }, ({ zoom }) => new ToolResult(zoom.toFixed(), [{ data: new Uint8Array(1), mediaType: 'image/png' }])),
  tool('weather.warn', { input: toStandardJsonSchema(v.object({ level: v.picklist(['low', 'high']) })), approval: 'always' }, ({ level }) => level.toUpperCase()),
  // @ts-expect-error the schema has no such field
  tool('weather.wrong', { input: z.object({ city: z.string() }) }, ({ town }) => town),
  // @ts-expect-error a JSON Schema is no Standard Schema
  tool('weather.json', { input: { type: 'object' } }, () => {}),
];

export async function use(signal: AbortSignal): Promise<Record<string, unknown>> {
  await serve({ servers: 'nats://127.0.0.1:4222', tools, signal, connection: { user: 'u', pass: 'p' } });
  return installRecord({ v: 1 }, tools);
}
