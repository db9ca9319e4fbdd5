import type { Approval, Question, SessionList, SessionRow } from './api.js';
import { Http, type Options } from './http.js';
import { approvals, questions, Session, type Abortable } from './session.js';

export type * from './api.js';
export { ConnectionError, ProblemError, RefoldError, RunError, type Code } from './errors.js';
export type { Update } from './events.js';
export type { Options } from './http.js';
export { Run, Session } from './session.js';
export type { Abortable, AskOptions, ControlOptions, DecideOptions, FailOptions, Input, ResumeOptions, TranscriptFormat, UpdateOptions } from './session.js';

/** Which sessions to list. */
export interface ListOptions extends Abortable {
  /** The beginning of their ids. */
  name?: string;
  /** One of these states. */
  state?: string[];
  /** What they wait for: approval, input, model, … */
  waitsFor?: string;
  /** The model of the latest run, or provider/model. */
  model?: string;
  /** Sessions that did something since then. */
  since?: Date;
  /** Also those that did nothing for a week, last. */
  all?: boolean;
}

/** A server. Nothing is sent before a method of a session is called. */
export class Refold {
  readonly #http: Http;

  constructor(options: Options) {
    this.#http = new Http(options);
  }

  /** An agent of the server. */
  agent(name: string): Agent {
    return new Agent(this.#http, name);
  }

  /** A session of any agent: its requests are for the agent that it has. */
  session(id: string): Session {
    return new Session(this.#http, id);
  }

  /** Lists sessions, the one with the latest activity first. */
  async *sessions(options: ListOptions = {}): AsyncGenerator<SessionRow, void, undefined> {
    const { signal, state, waitsFor, since, ...rest } = options;
    const query = { ...rest, state: state?.join(','), waits_for: waitsFor, since: since?.toISOString() };
    let after: string | undefined;
    do {
      const page: SessionList = await this.#http.call('GET', '/v1/sessions', { query: { ...query, after }, signal });
      yield* page.sessions;
      after = page.next;
    } while (after !== undefined);
  }

  /** The calls of all sessions that wait for a reply. */
  questions(options: Abortable = {}): Promise<Question[]> {
    return questions(this.#http, undefined, options);
  }

  /** The calls of all sessions that wait for a person. */
  approvals(options: Abortable = {}): Promise<Approval[]> {
    return approvals(this.#http, undefined, options);
  }
}

/** An agent has a model, a system text and tools. */
export class Agent {
  readonly name: string;
  readonly #http: Http;

  /** @internal */
  constructor(http: Http, name: string) {
    this.#http = http;
    this.name = name;
  }

  /** A session with the agent. It begins with its first run. */
  session(id: string): Session {
    return new Session(this.#http, id, this.name);
  }
}
