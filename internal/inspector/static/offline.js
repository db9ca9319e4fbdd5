// In an exported file this is in the place of api.js: what a server answered is in the
// file. Nothing is sent.
import { signal } from './preact.js';
import { changesOf } from './diff.js';

/** Returns the bytes of an element's base64. @param {string} text */
function unpacked(text) {
  const packed = atob(text);
  const all = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) all[i] = packed.charCodeAt(i);
  return all;
}

/** @param {string} id */
async function decompressed(id) {
  const stream = new Blob([unpacked(document.getElementById(id)?.textContent ?? '')]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The answers, by path: JSON, or base64 after "=". */
const answers = new Map(new TextDecoder().decode(await decompressed('answers')).split('\n').map((line) => {
  const at = line.indexOf('\t');
  return [line.slice(0, at), line.slice(at + 1)];
}));

export class Problem extends Error {
  /** @param {number} status @param {string} code @param {string} detail */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** @param {string} path */
function answer(path) {
  const found = answers.get(path);
  if (found === undefined) throw new Problem(404, 'not_exported', 'This file does not have it: it was left out, or needs a server.');
  return found;
}

export const base = '';
export const caller = signal({ subject: '', rights: [], scoped: true, agents: [], file: JSON.parse(answer('about')) });
export const gate = signal('');
export const trouble = signal('');
export const takeToken = () => false;
export const enter = async () => {};
export const whoAmI = async () => {};
export const may = () => false;

/** @param {string} path */
export async function get(path) {
  const [, session, a, b] = /^(.+)\/diff\?a=(\d+)&b=(\d+)$/.exec(path) ?? [];
  if (!session) return JSON.parse(answer(path.replace('&record=false', '')));
  const [before, after] = [a, b].map((at) => JSON.parse(answer(`${session}/state?at=${at}`)).record);
  return changesOf(before, after);
}

/** @param {string} sid */
export const transcriptOf = async (sid) => ({ entries: JSON.parse(answer(of(sid, '/transcript'))), through: Infinity });
/** @param {string} path */
export const post = async (path) => answer(`POST ${path}`);
export const put = post;
export const remove = post;
/** @param {string} path */
export const fileOf = async (path) => answer(path);
export const stream = post;
export const follow = () => () => {};
export const watchLog = follow;
/** @param {string} sid @param {string} [rest] */
export const of = (sid, rest = '') => `/v1/sessions/${encodeURIComponent(sid)}${rest}`;
export const newKey = () => '';

/** @param {string} path */
export async function bytes(path) {
  if (path.startsWith('/program/')) return decompressed('program');
  const text = answer(path);
  return text.startsWith('=') ? unpacked(text.slice(1)) : new TextEncoder().encode(text);
}
