import type { Problem } from './api.js';
import { ConnectionError, ProblemError } from './errors.js';

/** How to reach a server. */
export interface Options {
  /** The server, such as https://example.com, with the path under which it is mounted. */
  url: string;
  /** The token, or a function that returns one: it is called before each request. */
  token?: string | (() => string | Promise<string>);
  /** In place of the global fetch. */
  fetch?: typeof fetch;
}

/** A query; fields that are undefined are left out. */
export type Query = Record<string, string | number | boolean | undefined>;

/** A request, besides its method and path. */
export interface Request {
  query?: Query | undefined;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is. */
  bytes?: { data: BodyInit; mediaType: string };
  /** The header Idempotency-Key: the request may be repeated, and takes effect once. */
  key?: string;
  signal?: AbortSignal | undefined;
}

/** How often a request is sent, if it may be repeated and the server is not reached. */
const TRIES = 5;

/** Sends requests. */
export class Http {
  readonly #url: string;
  readonly #token: Options['token'];
  readonly #fetch: typeof fetch;

  constructor(options: Options) {
    this.#url = options.url.replace(/\/+$/, '');
    this.#token = options.token;
    this.#fetch = options.fetch ?? ((...args) => globalThis.fetch(...args)); // browsers want their own `this`
  }

  /** Sends a request, and returns the answer's JSON, or its text if it is no JSON. */
  async call<T>(method: string, path: string, request: Request = {}): Promise<T> {
    const repeatable = method === 'GET' || request.key !== undefined;
    for (let tried = 1; ; tried++) {
      try {
        const response = await this.send(method, path, request);
        const text = await response.text();
        const json = (response.headers.get('Content-Type') ?? '').startsWith('application/json');
        return (json ? JSON.parse(text) : text) as T;
      } catch (error) {
        request.signal?.throwIfAborted();
        if (!repeatable || tried === TRIES || !isTransient(error)) throw asError(error);
        await pause(tried, request.signal, error);
      }
    }
  }

  /** Sends a request once. An answer that is no success is a ProblemError. */
  async send(method: string, path: string, request: Request): Promise<Response> {
    const headers = new Headers();
    const token = typeof this.#token === 'function' ? await this.#token() : this.#token;
    if (token) headers.set('Authorization', `Bearer ${token}`);
    if (request.key !== undefined) headers.set('Idempotency-Key', request.key);
    const init: RequestInit = { method, headers };
    if (request.bytes) {
      headers.set('Content-Type', request.bytes.mediaType);
      init.body = request.bytes.data;
    } else if (request.body !== undefined) {
      headers.set('Content-Type', 'application/json');
      init.body = JSON.stringify(request.body);
    }
    if (request.signal) init.signal = request.signal;
    const response = await this.#fetch(this.#url + path + queryOf(request.query), init);
    if (!response.ok) throw await problemOf(response);
    return response;
  }
}

function queryOf(query: Query = {}): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) pairs.set(name, String(value));
  const text = pairs.toString();
  return text === '' ? '' : `?${text}`;
}

async function problemOf(response: Response): Promise<ProblemError> {
  const text = await response.text();
  if ((response.headers.get('Content-Type') ?? '').startsWith('application/problem+json')) {
    return new ProblemError(JSON.parse(text) as Problem, retryAfter(response));
  }
  const { status, statusText } = response;
  return new ProblemError({ status, code: `http_${status}`, detail: `${statusText}: ${text.slice(0, 200)}` }, retryAfter(response));
}

function retryAfter(response: Response): number | undefined {
  const text = response.headers.get('Retry-After') ?? '';
  return /^\d+$/.test(text) ? Number(text) : undefined;
}

/** Reports whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  return error instanceof ProblemError ? [429, 502, 503, 504].includes(error.status) : isLost(error);
}

/** fetch says TypeError, and some runtimes other errors: all but those of this package. */
function isLost(error: unknown): boolean {
  return !(error instanceof ProblemError) && !(error instanceof SyntaxError);
}

/** Wraps what fetch throws. */
export function asError(error: unknown): unknown {
  if (!isLost(error) || error instanceof ConnectionError) return error;
  return new ConnectionError(`the server can't be reached: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}

/** How many seconds a server may ask to wait. */
const WAIT_MAX = 60;

/**
 * Waits before a request is repeated: longer each time, up to 5 seconds, or for as long as the
 * server asked.
 */
export async function pause(failures: number, signal?: AbortSignal, error?: unknown): Promise<void> {
  if (failures === 0) return;
  const asked = error instanceof ProblemError ? error.retryAfter ?? 0 : 0;
  const milliseconds = Math.max(Math.min(5000, 125 * 2 ** failures), 1000 * Math.min(asked, WAIT_MAX));
  await new Promise<void>((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', stop, { once: true });
  });
}

/** Returns a key of a request. */
export function newKey(): string {
  const bytes = new Uint8Array(16).map(() => Math.random() * 256); // a key is unique, and no secret: Node.js 18 has no global crypto
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
