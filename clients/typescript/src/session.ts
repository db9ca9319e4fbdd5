import type { Approval, Blob as StoredFile, OverridesRequest, Part, Question, Redacted, RunAccepted, RunRequest, RunState, Schedule, ScheduleRequest, Taken, View } from './api.js';
import { RunError } from './errors.js';
import { follow, type Update } from './events.js';
import { newKey, type Http } from './http.js';

/** The user's input: a text, or texts and stored files. */
export type Input = string | Part[];

/** What ends a call early: the session goes on. */
export interface Abortable {
  signal?: AbortSignal;
}

export interface AskOptions extends Abortable {
  /** The same submission with the same input is one run, however often it is sent. */
  submission?: string;
  /** What to do while another run is active; queue if absent. */
  whenBusy?: NonNullable<RunRequest['when_busy']>;
  /** The run's own config in place of the agent's: needs the right `operate`. */
  config?: Record<string, unknown>;
}

export interface ControlOptions extends Abortable {
  /** For people. */
  reason?: string;
}

export interface ResumeOptions extends ControlOptions {
  /** In place of the run's budget: needs the right `operate`. */
  budget?: Record<string, unknown>;
}

export interface FailOptions extends ControlOptions {
  /** The run's code, for programs. */
  code?: string;
}

export interface UpdateOptions extends Abortable {
  /** The position of an update: they go on after it. `start` is the session's beginning. */
  after?: string;
}

export interface DecideOptions extends Abortable {
  /** JSON with which an approved call runs in place of the model's. */
  arguments?: string;
  /** Why it is denied, which the model is shown. */
  reason?: string;
}

/** The forms of a transcript. */
export type TranscriptFormat = 'json' | 'md' | 'openai' | 'anthropic';

/** A conversation with an agent. It begins with its first run. */
export class Session {
  readonly id: string;
  readonly #http: Http;
  readonly #agent: string | undefined;

  /** @internal */
  constructor(http: Http, id: string, agent?: string) {
    this.id = id;
    this.#http = http;
    this.#agent = agent;
  }

  /** Requests a run. When it returns, nothing can lose the request. */
  async ask(input: Input, options: AskOptions = {}): Promise<Run> {
    const body: RunRequest = { input };
    if (this.#agent !== undefined) body.agent = this.#agent;
    if (options.whenBusy) body.when_busy = options.whenBusy;
    if (options.config) body.config = options.config;
    return this.#begin('/runs', body, options);
  }

  /** Gives the active run more input before its next turn. Without one it starts a run. */
  async steer(input: Input, options: Abortable & { submission?: string } = {}): Promise<Run> {
    return this.#begin('/steer', { input }, options);
  }

  /** A handle on an earlier run. It sends nothing. */
  run(number: number): Run {
    return new Run(this.#http, this, number);
  }

  /** Keeps the active run from beginning turns and calls. */
  pause(options: ControlOptions = {}): Promise<Taken> {
    return this.#control('/pause', options);
  }

  /** Lets the paused run go on. */
  resume(options: ResumeOptions = {}): Promise<Taken> {
    return this.#control('/resume', options, { budget: options.budget });
  }

  /** Ends the active run when its open work is settled. */
  interrupt(options: ControlOptions = {}): Promise<Taken> {
    return this.#control('/interrupt', options);
  }

  /** Ends the active run at once. */
  cancel(options: ControlOptions = {}): Promise<Taken> {
    return this.#control('/cancel', options);
  }

  /** Ends the run that waits for input as completed: its output is the model's last answer. */
  complete(options: ControlOptions = {}): Promise<Taken> {
    return this.#control('/complete', options);
  }

  /** Ends the run that waits for input as failed. */
  fail(options: FailOptions = {}): Promise<Taken> {
    return this.#control('/fail', options, { code: options.code });
  }

  /** Ends the session for good. Needs the right `operate`. */
  end(options: Abortable = {}): Promise<Taken> {
    return this.#http.call('POST', this.path('/end'), { key: newKey(), signal: options.signal });
  }

  /**
   * Erases the session for good, also one that has ended. Needs the right `erase`. Its
   * messages stay stored until the server's eraser deletes them.
   */
  delete(options: ControlOptions = {}): Promise<Taken> {
    return this.#control('', options, {}, 'DELETE');
  }

  /**
   * Removes the text of an event for good: the session stays what it is. Needs the right
   * `erase`. It takes some seconds. `text_in_use`: the session uses it still.
   */
  redact(seq: number, options: Abortable = {}): Promise<Redacted> {
    return this.#http.call('DELETE', this.path(`/events/${seq}`), { signal: options.signal });
  }

  /** Holds the session: nobody can delete it until endHold. Needs the right `operate`. */
  hold(options: ControlOptions = {}): Promise<Taken> {
    return this.#control('/hold', options);
  }

  /** Ends the hold of the session. Needs the right `operate`. */
  endHold(options: ControlOptions = {}): Promise<Taken> {
    return this.#control('/hold', options, {}, 'DELETE');
  }

  /** What happens in the session from now on, or after a position. */
  updates(options: UpdateOptions = {}): AsyncGenerator<Update, void, undefined> {
    return follow(this.#http, this.path('/updates'), {}, options.after, options.signal);
  }

  /** What the session looks like now. */
  view(options: Abortable = {}): Promise<View> {
    return this.#http.call('GET', this.path(), { signal: options.signal });
  }

  /** The conversation: `md` as Markdown, all others as JSON. */
  transcript(format: 'md', options?: Abortable): Promise<string>;
  transcript(format?: Exclude<TranscriptFormat, 'md'>, options?: Abortable): Promise<unknown>;
  transcript(format: TranscriptFormat = 'json', options: Abortable = {}): Promise<unknown> {
    return this.#http.call('GET', this.path('/transcript'), { query: { format }, signal: options.signal });
  }

  /** The calls that wait for a person. */
  async approvals(options: Abortable = {}): Promise<Approval[]> {
    return approvals(this.#http, this.id, options);
  }

  /** Approves a call with the arguments that the approval has, or with others. */
  approve(approval: Approval, options: DecideOptions = {}): Promise<Taken> {
    return this.#decide('approve', approval, options);
  }

  /** Denies a call. */
  deny(approval: Approval, options: Omit<DecideOptions, 'arguments'> = {}): Promise<Taken> {
    return this.#decide('deny', approval, options);
  }

  /** The calls that wait for a reply. */
  async questions(options: Abortable = {}): Promise<Question[]> {
    return questions(this.#http, this.id, options);
  }

  /** Answers a question: with JSON, if it has a schema. */
  reply(question: Question, output: string, options: Abortable = {}): Promise<Taken> {
    return this.#reply(question, { output }, options);
  }

  /** Says that nobody answers a question. The model is shown the reason. */
  decline(question: Question, reason: string, options: Abortable = {}): Promise<Taken> {
    return this.#reply(question, { declined: reason }, options);
  }

  /** Sets facts, and removes those that are null. Needs the right `operate`. */
  setFacts(facts: Record<string, string | null>, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('PUT', this.path('/facts'), { body: { facts }, signal: options.signal });
  }

  /** Gives the session another agent. Needs the right `operate`. */
  setAgent(agent: string, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('PUT', this.path('/agent'), { body: { agent }, signal: options.signal });
  }

  /** Changes which tools are offered. Needs the right `operate`. */
  setOverrides(overrides: OverridesRequest, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('PUT', this.path('/overrides'), { body: overrides, signal: options.signal });
  }

  /** Selects the profile of runs whose config names none. Needs the right `operate`. */
  setProfile(profile: string, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('PUT', this.path('/profile'), { body: { profile }, signal: options.signal });
  }

  /** Sets the session's own config, for runs that bring none. Needs the right `operate`. */
  setConfig(config: Record<string, unknown>, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('PUT', this.path('/config'), { body: { config }, signal: options.signal });
  }

  /** Replaces the session's registry of tools. Needs the right `operate`. */
  setRegistry(registry: Record<string, unknown>, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('PUT', this.path('/registry'), { body: { registry }, signal: options.signal });
  }

  /** The session's schedules, and when each fires next. */
  async schedules({ signal }: Abortable = {}): Promise<Schedule[]> {
    const list = await this.#http.call<{ schedules: Schedule[] }>('GET', this.path('/schedules'), { signal });
    return list.schedules;
  }

  /** Has the session request a run at each time of a cron expression. Needs the right `operate`. */
  setSchedule(name: string, schedule: ScheduleRequest, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('PUT', this.#schedule(name), { body: schedule, signal: options.signal });
  }

  /** Removes a schedule: its runs go on. Needs the right `operate`. */
  removeSchedule(name: string, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('DELETE', this.#schedule(name), { signal: options.signal });
  }

  /** Pauses a schedule. Needs the right `operate`. */
  pauseSchedule(name: string, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('POST', this.#schedule(name, '/pause'), { signal: options.signal });
  }

  /** Lets a paused schedule go on. Needs the right `operate`. */
  resumeSchedule(name: string, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('POST', this.#schedule(name, '/resume'), { signal: options.signal });
  }

  /** Stores a file for the parts of this session's requests: `{ blob: file.blob }`. */
  upload(data: BodyInit, options: Abortable & { name?: string } = {}): Promise<StoredFile> {
    const bytes = { data, mediaType: 'application/octet-stream' };
    return this.#http.call('PUT', this.path('/blobs'), { bytes, query: { name: options.name }, signal: options.signal });
  }

  /** @internal */
  path(rest = ''): string {
    return `/v1/sessions/${encodeURIComponent(this.id)}${rest}`;
  }

  #schedule(name: string, rest = ''): string {
    return this.path(`/schedules/${encodeURIComponent(name)}${rest}`);
  }

  async #begin(path: string, body: unknown, options: AskOptions): Promise<Run> {
    const accepted = await this.#http.call<RunAccepted>('POST', this.path(path), { body, key: options.submission ?? newKey(), signal: options.signal });
    return new Run(this.#http, this, accepted.run);
  }

  #control(path: string, { reason, signal }: ControlOptions, more: Record<string, unknown> = {}, method = 'POST'): Promise<Taken> {
    return this.#http.call(method, this.path(path), { body: { reason, ...more }, key: newKey(), signal });
  }

  #reply(question: Question, answer: { output?: string; declined?: string }, options: Abortable): Promise<Taken> {
    const body = { ...answer, args_hash: question.args_hash };
    return this.#http.call('POST', this.path(`/questions/${encodeURIComponent(question.call)}`), { body, key: newKey(), signal: options.signal });
  }

  #decide(decision: 'approve' | 'deny', approval: Approval, options: DecideOptions): Promise<Taken> {
    const { args_hash, call, pack } = approval;
    const body = { decision, args_hash, arguments: options.arguments, reason: options.reason, manifest: pack?.manifest };
    return this.#http.call('POST', this.path(`/approvals/${encodeURIComponent(call)}`), { body, key: newKey(), signal: options.signal });
  }
}

/** One request in a session. */
export class Run {
  readonly session: Session;
  /** From 1. */
  readonly number: number;
  readonly #http: Http;

  /** @internal */
  constructor(http: Http, session: Session, number: number) {
    this.#http = http;
    this.session = session;
    this.number = number;
  }

  /** What happens in the run, from its beginning to its end. Leaving the loop stops nothing. */
  updates(options: UpdateOptions = {}): AsyncGenerator<Update, void, undefined> {
    return follow(this.#http, this.session.path('/updates'), { run: this.number }, options.after, options.signal);
  }

  /** The run as it is now, and its answer if it has ended. */
  state(options: Abortable = {}): Promise<RunState> {
    return this.#http.call('GET', this.session.path(`/runs/${this.number}`), { signal: options.signal });
  }

  /** Waits for the end of the run. Any other end than completed is a RunError. */
  async wait(options: Abortable = {}): Promise<RunState> {
    let state = await this.state(options);
    while (!state.ended) {
      for await (const update of this.updates(options)) if (update.type === 'run_ended') break;
      state = await this.state(options);
    }
    if (state.lifecycle !== 'completed') throw new RunError(state);
    return state;
  }

  /** Ends the run at once, the active one or a queued one. */
  cancel({ reason, signal }: ControlOptions = {}): Promise<Taken> {
    return this.#http.call('POST', this.session.path(`/runs/${this.number}/cancel`), { body: { reason }, key: newKey(), signal });
  }

  /** Gives the queued run another input. */
  edit(text: string, options: Abortable = {}): Promise<Taken> {
    return this.#http.call('PUT', this.session.path(`/runs/${this.number}/input`), { body: { input: text }, signal: options.signal });
  }
}

/** @internal */
export async function questions(http: Http, session: string | undefined, { signal }: Abortable): Promise<Question[]> {
  const list = await http.call<{ questions: Question[] }>('GET', '/v1/questions', { query: { session }, signal });
  return list.questions;
}

export async function approvals(http: Http, session: string | undefined, { signal }: Abortable): Promise<Approval[]> {
  const list = await http.call<{ approvals: Approval[] }>('GET', '/v1/approvals', { query: { session }, signal });
  return list.approvals;
}
