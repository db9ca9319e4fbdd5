// The server: requests with the token, which is held in memory alone, and streams of
// server-sent events by fetch, which go on after what was received.
import { signal } from './preact.js';

export const base = document.documentElement.dataset.base ?? '';

/** The token; empty: none was given, which a server without tokens accepts. */
let token = '';
/**
 * Who the server says this is; null: not known yet. A page that is a file says so in file.
 * @typedef {API.CallerShown & { file?: { program?: boolean } }} Caller
 */
export const caller = signal(/** @type {Caller | null} */ (null));
/** What the page needs to go on: '', 'token' or 'refused'. */
export const gate = signal('');
/** Why the server can't be reached; empty: it can. */
export const trouble = signal('');

/** Takes the token of the address, #token=…, and drops it from there. Returns whether there was one. */
export function takeToken() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return false;
  token = decodeURIComponent(found[1]);
  gate.value = '';
  history.replaceState(history.state, '', location.pathname + location.search);
  return true;
}

/** Uses a token, and asks who it is. @param {string} text */
export async function enter(text) {
  token = text;
  gate.value = '';
  await whoAmI();
}

/** Asks who the token is. */
export async function whoAmI() {
  try {
    caller.value = await get('/v1/caller');
  } catch (e) {
    if (!(e instanceof Problem)) throw e;
  }
}

/**
 * May the caller do what needs a right?
 * @param {API.CallerShown['rights'][number]} right
 */
export const may = (right) => caller.value?.rights.includes(right) ?? false;

/** What the server answered instead of what was asked for (RFC 9457). */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} detail
   */
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

const noAnswer = 'The server does not answer. The page keeps what it has, and tries again.';
const noLog = 'The server does not reach the log. The page keeps what it has, and goes on when the log is back.';

/** @type {(method: string, path: string, more?: { body?: unknown, headers?: Record<string, string>, signal?: AbortSignal }) => Promise<Response>} */
async function send(method, path, { body, headers = {}, signal } = {}) {
  const all = { ...headers };
  if (token) all.Authorization = `Bearer ${token}`;
  if (body !== undefined) all['Content-Type'] = 'application/json';
  let answer;
  try {
    answer = await fetch(base + path, { method, headers: all, body: body === undefined ? undefined : JSON.stringify(body), signal, cache: 'no-store' });
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    trouble.value = noAnswer;
    throw new Problem(0, 'unreachable', 'The server does not answer.');
  }
  if (trouble.value === noAnswer) trouble.value = '';
  if (answer.ok) return answer;
  /** @type {{ code?: string, detail?: string }} */
  let problem = {};
  try {
    problem = await answer.json();
  } catch { /* a proxy answered */ }
  if (answer.status === 401) gate.value = token ? 'refused' : 'token';
  throw new Problem(answer.status, problem.code ?? 'internal', problem.detail ?? `${answer.status} ${answer.statusText}`);
}

/** @param {Response} answer */
const parsed = (answer) => answer.json();
/** @type {<P extends string>(path: P, signal?: AbortSignal) => Promise<API.GetAnswer<P>>} */
export const get = (path, signal) => send('GET', path, { signal }).then(parsed);
/** @type {<P extends string>(path: P, body: unknown, key?: string) => Promise<API.PostAnswer<P>>} */
export const post = (path, body, key) => send('POST', path, { body, headers: key ? { 'Idempotency-Key': key } : {} }).then(parsed);
/** @type {<P extends string>(path: P, body: unknown) => Promise<API.PutAnswer<P>>} */
export const put = (path, body) => send('PUT', path, { body }).then(parsed);
/** @type {<P extends string>(path: P, body?: unknown, key?: string) => Promise<API.DeleteAnswer<P>>} */
export const remove = (path, body, key) => send('DELETE', path, { body, headers: key ? { 'Idempotency-Key': key } : {} }).then(parsed);
/**
 * Returns a session's transcript, and the sequence of the event that it goes up to.
 * @param {string} sid @param {AbortSignal} stop
 */
export async function transcriptOf(sid, stop) {
  const answer = await send('GET', of(sid, '/transcript'), { signal: stop });
  return { entries: await answer.json(), through: Number(answer.headers.get('ETag')?.replace(/\D/g, '')) || 0 };
}
/** Returns an answer of the server as bytes. @param {string} path */
export const bytes = async (path) => new Uint8Array(await (await send('GET', path)).arrayBuffer());

/** Returns a file of the server as text. @param {string} path */
export const fileOf = async (path) => (await send('GET', path)).text();

/**
 * Returns a path of a session.
 * @type {<R extends string = ''>(sid: string, rest?: R) => `/v1/sessions/${string}${R}`}
 */
export const of = (sid, rest) => /** @type {any} */ (`/v1/sessions/${encodeURIComponent(sid)}${rest ?? ''}`);

/** Returns a new key for what must happen once. */
export const newKey = () => crypto.randomUUID();

/** Reads the events of a stream until it ends: each with id, event and data. @param {Response} answer */
async function* events(answer) {
  const reader = /** @type {ReadableStream<BufferSource>} */ (answer.body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let e = { id: '', event: '', data: '' };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    let end;
    while ((end = rest.indexOf('\n')) >= 0) {
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      const at = line.indexOf(': ');
      const field = line.slice(0, at);
      if (line === '') {
        if (e.data || e.id) yield e;
        e = { id: '', event: '', data: '' };
      } else if (at > 0 && (field === 'id' || field === 'event' || field === 'data')) e[field] = line.slice(at + 2);
    }
  }
}

/**
 * Streams the answer to a POST, once.
 * @type {(path: string, each: (value: any) => void, signal: AbortSignal) => Promise<void>}
 */
export async function stream(path, each, signal) {
  for await (const e of events(await send('POST', path, { signal }))) {
    if (e.event === 'problem') throw new Problem(500, JSON.parse(e.data).code, JSON.parse(e.data).detail);
    if (e.data) each(JSON.parse(e.data));
  }
}

/** @type {(ms: number, signal: AbortSignal) => Promise<void>} */
const pause = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener('abort', () => { clearTimeout(timer); done(); });
});

const hiddenFor = 60_000;
const logEvery = 5000;

/**
 * Waits until the tab is seen, if it has been hidden for a minute.
 * @type {(signal: AbortSignal) => Promise<void>}
 */
function seen(signal) {
  return new Promise((done) => {
    if (!document.hidden) return done();
    const look = () => { if (!document.hidden) { document.removeEventListener('visibilitychange', look); done(); } };
    document.addEventListener('visibilitychange', look);
    signal.addEventListener('abort', () => { document.removeEventListener('visibilitychange', look); done(); });
  });
}

/** Says in `trouble` while the server does not reach the log, until the function that it returns is called. */
export function watchLog() {
  const whole = new AbortController();
  const run = async () => {
    for (;;) {
      await pause(logEvery, whole.signal);
      await seen(whole.signal);
      if (whole.signal.aborted) return;
      try {
        await send('GET', '/readyz', { signal: whole.signal });
        trouble.value = '';
      } catch (e) {
        if (e instanceof Problem && e.status >= 500) trouble.value = noLog;
      }
    }
  };
  run();
  return () => whole.abort();
}

/**
 * Follows a stream until stop is called: each(value, event, id) is called with each event
 * once. It goes on after a lost connection; a tab that is hidden for a minute closes its own.
 * @type {(path: string, after: string, each: (value: any, event: string, id: string) => void) => () => void}
 */
export function follow(path, after, each) {
  const whole = new AbortController();
  const run = async () => {
    for (let tries = 0; !whole.signal.aborted;) {
      const one = new AbortController();
      const stop = () => one.abort();
      whole.signal.addEventListener('abort', stop);
      let timer = 0;
      const hide = () => { clearTimeout(timer); if (document.hidden) timer = setTimeout(stop, hiddenFor); };
      document.addEventListener('visibilitychange', hide);
      let ended = false;
      try {
        const answer = await send('GET', path + (after ? `${path.includes('?') ? '&' : '?'}after=${encodeURIComponent(after)}` : ''), { signal: one.signal });
        if (answer.status === 204) return;
        for await (const e of events(answer)) {
          tries = 0;
          if (e.id) after = e.id;
          if (e.event === 'problem') throw new Problem(500, JSON.parse(e.data).code, JSON.parse(e.data).detail);
          if (e.data) each(JSON.parse(e.data), e.event, after);
        }
      } catch (e) {
        ended = e instanceof Problem && e.status >= 400 && e.status < 500 && e.status !== 429;
      } finally {
        clearTimeout(timer);
        document.removeEventListener('visibilitychange', hide);
        whole.signal.removeEventListener('abort', stop);
      }
      if (ended) return;
      await seen(whole.signal);
      await pause(Math.min(5000, 250 * 2 ** tries++), whole.signal);
    }
  };
  run();
  return () => whole.abort();
}
