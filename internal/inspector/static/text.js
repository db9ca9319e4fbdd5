// Texts of models, tools and people become text nodes, and nothing else. What can't be
// seen, or changes the direction of what is, is shown as an escape.
import { html } from './preact.js';

// Controls but line breaks and tabs; soft hyphens; zero-width, bidi and other format
// characters; separators; variation selectors that hide; tags; lone surrogates.
const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb]|\u{1d173}|[\u{e0000}-\u{e0fff}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** @param {string} c */
const escaped = (c) => `\\u{${c.codePointAt(0)?.toString(16)}}`;

/** Returns a text with escapes, as nodes. @param {any} text @returns {any} */
export function plain(text) {
  if (typeof text !== 'string') return text;
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(unseen)) {
    nodes.push(text.slice(from, found.index), html`<span class="esc" title="a character that can't be seen">${escaped(found[0])}</span>`);
    from = found.index + found[0].length;
  }
  return from ? [...nodes, text.slice(from)] : text;
}

/** Returns a text with escapes, as a text: for attributes. @param {unknown} text */
export const flat = (text) => String(text ?? '').replace(unseen, escaped);

const shownMax = 64 << 10;

/** A text of any length: its beginning, and a button for the rest. @param {string} text */
export const limited = (text) => (text.length > shownMax ? `${text.slice(0, shownMax)}…` : text);

const token = /("(?:[^"\\]|\\.)*")(\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/g;

/** Returns JSON, or any text, as nodes with colours. @param {string} text */
export function code(text) {
  const nodes = [];
  let from = 0;
  const shown = limited(text);
  for (const found of shown.matchAll(token)) {
    if (nodes.length > 4000) break;
    const [whole, quoted, colon] = found;
    const kind = quoted ? (colon ? 'k' : 'str') : whole === 'null' ? 'nul' : 'lit';
    nodes.push(plain(shown.slice(from, found.index)), html`<span class=${kind}>${plain(quoted ?? whole)}</span>`, colon ?? '');
    from = found.index + whole.length;
  }
  return [...nodes, plain(shown.slice(from))];
}

/** Returns JSON with line breaks; text that is none, as it is. Numbers keep their spelling. @param {string} text */
export function pretty(text) {
  let out = '';
  let depth = 0;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const line = () => `\n${'  '.repeat(depth)}`;
  for (const [part] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    if (part === '{' || part === '[') { depth++; out += part + line(); } else if (part === '}' || part === ']') { depth--; out = `${/[{[]\s*$/.test(out) ? out.trimEnd() : out + line()}${part}`; } else if (part === ',') out += part + line();
    else out += part === ':' ? ': ' : part;
  }
  return out;
}

/** @param {number} n */
const two = (n) => String(n).padStart(2, '0');
/** @param {Date} d */
const clock = (d) => `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;

/** A time of day, with milliseconds. @param {number} ms */
export function timeOf(ms) {
  const d = new Date(ms);
  return `${clock(d)}.${String(d.getMilliseconds()).padStart(3, '0')}`;
}

/** A day and a time. @param {number} ms */
export function dateOf(ms) {
  const d = new Date(ms);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${clock(d)}`;
}

/** How long something took. @param {number} ms */
export function took(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  /** @type {[string, number][]} */
  const units = [['d', 86_400_000], ['h', 3_600_000], ['min', 60_000], ['s', 1000]];
  const at = units.findIndex(([, size]) => ms >= size);
  const [[unit, size], [less, part]] = [units[at], units[at + 1]];
  const rest = Math.floor((ms % size) / part);
  return `${Math.floor(ms / size)} ${unit}${rest ? ` ${rest} ${less}` : ''}`;
}

/** How long ago a time was. @param {number} ms @param {number} now */
export function ago(ms, now) {
  const past = now - ms;
  if (past < 1500) return 'now';
  if (past < 60_000) return `${Math.floor(past / 1000)} s ago`;
  if (past < 3_600_000) return `${Math.floor(past / 60_000)} min ago`;
  if (past < 86_400_000) return `${Math.floor(past / 3_600_000)} h ago`;
  return past < 30 * 86_400_000 ? `${Math.floor(past / 86_400_000)} d ago` : dateOf(ms).slice(0, 10);
}

const grouped = new Intl.NumberFormat('en-US');
/** @param {number | null} [n] */
export const number = (n) => (n === undefined || n === null ? '–' : grouped.format(n).replaceAll(',', '\u202f'));

/** @param {number} n */
export function size(n) {
  if (n < 1024) return `${n} B`;
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let at = -1;
  do { n /= 1024; at++; } while (n >= 1024 && at < units.length - 1);
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[at]}`;
}

/** Cost in micro-units. @param {number} [micro] */
export const cost = (micro) => (micro ? (micro / 1e6).toFixed(micro < 10_000 ? 4 : 2) : '–');
