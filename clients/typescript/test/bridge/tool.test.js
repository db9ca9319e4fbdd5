// Tools: their schemas from three libraries, their specs, and what is refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { installRecord, registry, tool } from '@refold/client/bridge';
import { toStandardJsonSchema } from '@valibot/to-json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { z } from 'zod';

const libraries = {
  zod: [z.object({ city: z.string().min(1) }), z.object({ at: z.date() })],
  valibot: [toStandardJsonSchema(v.object({ city: v.pipe(v.string(), v.minLength(1)) })), v.object({ city: v.string() })],
  arktype: [type({ city: 'string > 0' }), { '~standard': { version: 1, vendor: 'arktype', validate: (value) => ({ value }) } }], // as before 2.1.28
};
const ctx = { signal: new AbortController().signal };

for (const [name, [input, without]] of Object.entries(libraries)) {
  test(`${name} gives the JSON Schema and checks the arguments`, async () => {
    const weather = tool('weather.get', { input }, ({ city }) => `rain in ${city}`);
    assert.deepEqual(weather.spec, {
      tool_id: 'weather.get', tool_name: 'weather_get', executor: { kind: 'effect', target: 'weather' },
      args_schema: { type: 'object', properties: { city: { type: 'string', minLength: 1 } }, required: ['city'] },
    });
    assert.equal(await weather.call('{"city":"Bergen"}', ctx), 'rain in Bergen');
    for (const args of ['{"city":""}', '{}', '']) {
      await assert.rejects(weather.call(args, ctx), { code: 'invalid_arguments', message: /city/ });
    }
  });

  test(`${name} without a JSON Schema is refused`, () => {
    const problem = new RegExp(`^tool t: the schema of ${name} .*the option jsonSchema`);
    assert.throws(() => tool('t', { input: without }, () => {}), { name: 'TypeError', message: problem });
    const jsonSchema = { type: 'object' };
    assert.deepEqual(tool('t', { input: without, jsonSchema }, () => {}).spec.args_schema, jsonSchema);
  });
}

test('the function gets what the schema makes', async () => {
  const input = z.object({ n: z.int().default(3) });
  assert.equal(await tool('t', { input }, ({ n }) => n).call('{}', ctx), 3);
});

test('options are fields of the spec', () => {
  const options = {
    input: z.object({}), description: 'D.', name: 'n', target: 'there', retrySafe: true, parallelSafe: true, readOnly: true,
    resourceKey: 'orders:{id}', resourceKind: 'text', requires: ['mail'], approval: 'args.n > 1', deadlineMs: 5000,
  };
  assert.deepEqual(tool('a.b', options, () => {}).spec, {
    tool_id: 'a.b', tool_name: 'n', description: 'D.', args_schema: { type: 'object', properties: {} }, executor: { kind: 'effect', target: 'there' },
    retry_safe: true, parallel_safe: true, access: 'read', resource_key: 'orders:{id}', resource_kind: 'text', requires: ['mail'], approval: 'args.n > 1', deadline_ms: 5000,
  });
});

test('a definition with a mistake is refused', () => {
  const input = z.object({});
  for (const [args, problem] of [
    [['a..b', { input }, () => {}], /its id/],
    [['a', { input, name: 'a b' }, () => {}], /its name a b/],
    [[`a.${'b'.repeat(70)}`, { input }, () => {}], /give the option name/],
    [['a', { input, target: 'a.b' }, () => {}], /its target a\.b/],
    [['a', { input: { type: 'object' } }, () => {}], /no Standard Schema/],
    [['a', { input: z.string() }, () => {}], /its input is no object/],
    [['a', { input }], /no function/],
    [['a', { input, deadlineMs: 0.5 }, () => {}], /deadlineMs/],
  ]) {
    assert.throws(() => tool(...args), problem);
  }
});

test('an install record gets the tools', () => {
  const tools = ['a.x', 'a.y'].map((id) => tool(id, { input: z.object({}) }, () => {}));
  const [x, y] = registry(tools).tools;
  assert.deepEqual(installRecord({}, tools), { v: 1, rules: 1, tools: [x, y] });
  const other = { tool_id: 'z' };
  const record = { v: 1, rules: 1, config: { model: 'm' }, tools: [{ tool_id: 'a.y', old: true }, other], profiles: [{ name: 'p', tools: ['z', 'a.y'] }] };
  assert.deepEqual(installRecord(record, tools), { ...record, tools: [y, other, x], profiles: [{ name: 'p', tools: ['z', 'a.y', 'a.x'] }] });
});
