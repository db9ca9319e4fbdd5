import type { Update as ApiUpdate, Problem } from './api.js';
import { ProblemError } from './errors.js';
import { asError, isTransient, pause, type Http, type Query } from './http.js';

/** One thing that happened in a session. */
export type Update = ApiUpdate & {
  /** Where it stands: updates go on after it. Opaque. */
  position: string;
};

/** A server-sent event. */
interface Event {
  id: string | undefined;
  event: string;
  data: string;
}

/**
 * A stream that says nothing for so long is lost: servers send a comment every 15 seconds.
 */
const SILENCE_MS = 30_000;

/** How often a server is asked for a stream that it has never sent. */
const TRIES = 5;

/**
 * Yields the updates of a stream, each once: after a lost connection it goes on after the
 * last one. It ends with the run, if it is one of a run.
 */
export async function* follow(http: Http, path: string, query: Query, after?: string, signal?: AbortSignal): AsyncGenerator<Update, void, undefined> {
  let position = after;
  let reached = false;
  let lost: unknown;
  for (let failures = 0; ; failures++) {
    await pause(failures, signal, lost);
    const connection = new Connection(signal);
    try {
      const response = await http.send('GET', path, { query: { ...query, after: position }, signal: connection.signal });
      if (response.status === 204 || !response.body) return;
      reached = true;
      for await (const { id, event, data } of events(response.body, connection)) {
        if (event === 'problem') throw new ProblemError(JSON.parse(data) as Problem);
        if (id !== undefined) position = id;
        if (event !== '' || data === '') continue;
        failures = -1; // it went on: the next connection is tried at once
        const update = { ...(JSON.parse(data) as ApiUpdate), position: position ?? '' };
        yield update;
        if (query.run !== undefined && update.type === 'run_ended') return;
      }
    } catch (error) {
      signal?.throwIfAborted();
      lost = error;
      if (!isTransient(error) || (!reached && failures + 1 >= TRIES)) throw asError(error);
    } finally {
      connection.close();
    }
  }
}

/** A connection ends when its reader says so, or when nothing comes for too long. */
class Connection {
  readonly #abort = new AbortController();
  readonly #outer: AbortSignal | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer?: AbortSignal) {
    outer?.throwIfAborted();
    this.#outer = outer;
    outer?.addEventListener('abort', this.close, { once: true });
    this.alive();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  alive(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.close, SILENCE_MS);
  }

  close = (): void => {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.close);
    this.#abort.abort();
  };
}

/** Parses server-sent events. What is cut off is left out: it comes again. */
async function* events(body: ReadableStream<Uint8Array>, connection: Connection): AsyncGenerator<Event, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = '';
  let next: Event = { id: undefined, event: '', data: '' };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    connection.alive();
    text += decoder.decode(value, { stream: true });
    const lines = text.split('\n');
    text = lines.pop()!;
    for (const line of lines.map((l) => l.replace(/\r$/, ''))) {
      if (line === '') {
        if (next.id !== undefined || next.data !== '') yield next;
        next = { id: undefined, event: '', data: '' };
        continue;
      }
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'id') next.id = value;
      else if (field === 'event') next.event = value;
      else if (field === 'data') next.data += (next.data === '' ? '' : '\n') + value;
    }
  }
}
