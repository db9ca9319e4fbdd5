// Writes the types of the HTTP API from web/openapi.json.
//
//   node generate.js          writes src/api.ts, of the client
//   node generate.js --check  fails if it is not what would be written
//   node generate.js --pages  writes api.d.ts, with which the scripts of the inspector's pages
//                             are checked: it also has which path answers what
import { readFileSync, writeFileSync } from 'node:fs';

const from = new URL('../../web/openapi.json', import.meta.url);
const client = new URL('src/api.ts', import.meta.url);
const pages = new URL('../../internal/inspector/npm/api.d.ts', import.meta.url);

const { paths, components: { schemas } } = JSON.parse(readFileSync(from, 'utf8'));
const used = new Set();
const isObject = (name) => schemas[name].type === 'object';

/** Adds the schemas that a value refers to. */
function use(value) {
  if (!value || typeof value !== 'object') return;
  const name = value.$ref?.match(/schemas\/(\w+)/)?.[1];
  if (name && !used.has(name)) {
    used.add(name);
    use(schemas[name]);
  }
  Object.values(value).forEach(use);
}

// Operations for the pages of the inspector have no methods here, and so no types.
use({ $ref: '#/components/schemas/Problem' });
use(Object.values(paths).flatMap(Object.values).filter(({ tags }) => !tags?.includes('inspector')));

/** Returns the type of a schema, at a depth of indentation. */
function typeOf(schema, depth) {
  if (schema.$ref) {
    const [name, ...rest] = schema.$ref.replace('#/components/schemas/', '').split('/');
    if (rest.length === 0) return name;
    return typeOf(rest.reduce((s, key) => s[key], schemas[name]), depth);
  }
  if ('const' in schema) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, depth)).join(' | ');
  if (schema.oneOf && !schema.type) return schema.oneOf.map((s) => typeOf(s, depth)).join(' | ');
  switch (schema.type) {
    case 'string': return 'string';
    case 'integer':
    case 'number': return 'number';
    case 'boolean': return 'boolean';
    case 'null': return 'null';
    case 'array': return `Array<${typeOf(schema.items, depth)}>`;
    case 'object': return objectOf(schema, depth);
  }
  return 'unknown';
}

const literal = (value) => (typeof value === 'string' ? `'${value}'` : String(value));

function objectOf(schema, depth) {
  if (schema.properties) return `{\n${fields(schema, depth + 1)}${'  '.repeat(depth)}}`;
  const values = schema.additionalProperties;
  return `Record<string, ${values && typeof values === 'object' ? typeOf(values, depth) : 'unknown'}>`;
}

function fields(schema, depth) {
  const indent = '  '.repeat(depth);
  return Object.entries(schema.properties).map(([name, field]) => {
    const optional = (schema.required ?? []).includes(name) ? '' : '?';
    return `${comment(field.description, indent)}${indent}${name}${optional}: ${typeOf(field, depth)};\n`;
  }).join('');
}

function comment(text, indent) {
  if (!text) return '';
  const lines = [];
  for (const word of text.replaceAll('*/', '* /').split(' ')) {
    const last = lines.length - 1;
    if (last < 0 || lines[last].length + word.length > 90 - indent.length) lines.push(word);
    else lines[last] += ` ${word}`;
  }
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}\n`).join('')}${indent} */\n`;
}

/** Declares an object whose required fields depend on one of its fields: a union. */
function unionOf(name, schema) {
  const [key] = Object.keys(schema.allOf[0].if.properties);
  const left = new Set(schema.properties[key].enum);
  const variants = schema.allOf.map(({ if: { properties }, then }) => {
    const values = properties[key].enum ?? [properties[key].const];
    values.forEach((value) => left.delete(value));
    const required = then.required.map((field) => `${field}: ${typeOf(schema.properties[field], 0)}`);
    return `  | { ${[`${key}: ${values.map(literal).join(' | ')}`, ...required].join('; ')} }`;
  });
  variants.push(`  | { ${key}: ${[...left].map(literal).join(' | ')} }`);
  const { [key]: described, ...properties } = schema.properties;
  return `${comment(schema.description, '')}export type ${name} = ${name}Fields & (\n${variants.join('\n')}\n);\n\n`
    + `/** The fields that any ${name} may have. */\nexport interface ${name}Fields {\n`
    + `${fields({ properties: { [key]: described, ...properties }, required: schema.required }, 1)}}\n`;
}

function declaration(name) {
  const schema = schemas[name];
  if (schema.allOf) return unionOf(name, schema);
  return `${comment(schema.description, '')}export interface ${name} {\n${fields(schema, 1)}}\n`;
}

/** Returns which path answers what, for an operation of each method: the longest paths first, since a parameter of a type has any characters. */
function answers() {
  const of = (method) => Object.entries(paths).flatMap(([path, { [method]: operation }]) => {
    const schema = (operation?.responses[200] ?? operation?.responses[202])?.content?.['application/json']?.schema;
    return operation ? [[path, schema?.$ref ? schema : {}]] : [];
  }).sort(([a], [b]) => b.split('/').length - a.split('/').length);
  const type = (method) => `${method[0].toUpperCase()}${method.slice(1)}Answer`;
  const cases = (method) => of(method).map(([path, schema]) => `  : P extends \`${path.replace(/\{\w+\}/g, '${string}')}\` ? ${typeOf(schema, 1)}\n`).join('');
  const open = '${';
  return ['get', 'post', 'put', 'delete'].map((method) => `/** What an operation with ${method.toUpperCase()} answers, by its path. */\nexport type ${type(method)}<P extends string> = P extends \`${open}infer Path}?${open}string}\` ? ${type(method)}<Path>\n${cases(method)}  : unknown;\n`).join('\n');
}

const head = (by) => `// Written by ${by} from web/openapi.json. Do not edit it.\n\n`;
const declared = (is) => Object.keys(schemas).filter(is).map(declaration).join('\n');

const text = head('generate.js') + declared((name) => used.has(name) && isObject(name));

if (process.argv.includes('--pages')) {
  writeFileSync(pages, `${head('clients/typescript/generate.js')}export as namespace API;\n\n${declared(isObject)}\n${answers()}`);
} else if (!process.argv.includes('--check')) {
  writeFileSync(client, text);
} else if (readFileSync(client, 'utf8') !== text) {
  console.error('clients/typescript/src/api.ts is not what web/openapi.json says: run npm run generate');
  process.exit(1);
}
