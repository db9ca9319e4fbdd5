// How two states differ, in an exported file: what the server answers for /diff, with the
// same paths, texts and limits as web/inspect_diff.go has. A test compares the two.

const changesMax = 500;
const valueBytesMax = 4 << 10;

/** Returns a value as JSON of a bounded length. @param {unknown} value */
function short(value) {
  if (value === undefined || value === null) return undefined;
  const all = new TextEncoder().encode(JSON.stringify(value));
  if (all.length <= valueBytesMax) return JSON.stringify(value);
  return `${new TextDecoder().decode(all.subarray(0, valueBytesMax), { stream: true })}…`; // without half a character
}

/** @param {unknown} value */
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/**
 * Returns the paths at which two records differ.
 * @type {(before: unknown, after: unknown) => API.ChangeList}
 */
export function changesOf(before, after) {
  /** @type {API.ChangeList} */
  const list = { changes: [] };
  /** @param {string} path @param {unknown} was @param {unknown} is */
  const add = (path, was, is) => {
    if (list.changes.length === changesMax) list.more = true;
    else list.changes.push({ path, old: short(was), new: short(is) });
  };
  /** @param {string} path @param {any} a @param {any} b */
  const compare = (path, a, b) => {
    if (isObject(a) && isObject(b)) {
      for (const name of [...new Set([...Object.keys(a), ...Object.keys(b)])].sort()) compareAt(path ? `${path}.${name}` : name, name, a, b);
    } else if (Array.isArray(a) && Array.isArray(b)) {
      for (let i = 0; i < Math.max(a.length, b.length); i++) compareAt(`${path}[${i}]`, i, a, b);
    } else if (a !== b) add(path, a, b);
  };
  /** @param {string} path @param {string | number} key @param {any} a @param {any} b */
  const compareAt = (path, key, a, b) => {
    if (Object.hasOwn(a, key) && Object.hasOwn(b, key)) compare(path, a[key], b[key]);
    else add(path, Object.hasOwn(a, key) ? a[key] : undefined, Object.hasOwn(b, key) ? b[key] : undefined);
  };
  compare('', before, after);
  return list;
}
