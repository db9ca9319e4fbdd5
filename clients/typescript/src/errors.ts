import type { Problem, RunState } from './api.js';

/** What all errors of this package are. */
export class RefoldError extends Error {
  override name = 'RefoldError';
}

/** Why a request was refused. */
export type Code = Problem['code'] | `http_${number}`;

/** The server refused a request. `code` tells programs why, `detail` tells people what to do. */
export class ProblemError extends RefoldError {
  override name = 'ProblemError';
  /** The HTTP status. */
  readonly status: number;
  /** `http_502`, say, if what answered was no server of Refold. */
  readonly code: Code;
  readonly detail: string;
  /** Seconds after which the same request may succeed, if the server knows. */
  readonly retryAfter: number | undefined;

  constructor(problem: { status: number; code: Code; detail: string }, retryAfter?: number) {
    super(`${problem.code}: ${problem.detail}`);
    this.status = problem.status;
    this.code = problem.code;
    this.detail = problem.detail;
    this.retryAfter = retryAfter;
  }
}

/** The server can't be reached, or its answer was cut off. `cause` has the reason. */
export class ConnectionError extends RefoldError {
  override name = 'ConnectionError';
}

/** A run ended failed, cancelled or interrupted. */
export class RunError extends RefoldError {
  override name = 'RunError';
  readonly lifecycle: RunState['lifecycle'];
  /** Why it failed; empty if it was cancelled or interrupted without a reason. */
  readonly code: string;
  readonly detail: string;
  /** What there is of an answer. */
  readonly answer: RunState;

  constructor(answer: RunState) {
    super(`run ${answer.run} ${answer.lifecycle}${answer.code ? ` (${answer.code})` : ''}${answer.detail ? `: ${answer.detail}` : ''}`);
    this.lifecycle = answer.lifecycle;
    this.code = answer.code ?? '';
    this.detail = answer.detail ?? '';
    this.answer = answer;
  }
}
