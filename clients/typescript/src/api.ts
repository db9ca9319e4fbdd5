// Written by generate.js from web/openapi.json. Do not edit it.

/** Names an agent. */
export interface AgentRequest {
  /** An agent of the server. */
  agent: string;
}

/** A call that waits for a person. */
export interface Approval {
  /** Hash of the arguments: a decision names it. */
  args_hash: string;
  /** JSON as the model wrote it; empty is {}. */
  arguments: string;
  /** The call's name in the session. */
  call: string;
  /** Why the call would not run if it was approved now. */
  code?: string;
  /** Unix milliseconds, after which the call is refused. */
  deadline?: number;
  /** Detail of the code, for people. */
  detail?: string;
  /** The pack that the call would enable. */
  pack?: PackShown;
  /** The calls above a session that is a child: its own first, the root's last. */
  parents?: Array<ParentCall>;
  /** The run. */
  run: number;
  /** The session. */
  session: string;
  /** The tool, as the model calls it. */
  tool: string;
  /** The tool. */
  tool_id: string;
}

/** The calls that wait for a person. */
export interface ApprovalList {
  /** The calls, by session. */
  approvals: Array<Approval>;
}

/**
 * The pack that a call of extensions_enable would add, as it was read for the person who
 * decides.
 */
export interface ApprovalPack {
  /** The lists are too large for this message: the manifest has them. */
  cut?: true;
  /** Hash of the manifest. The decision names it. */
  hash: string;
  /** Texts that models are shown: those of its prompt, then those of its skills. */
  prompt?: Array<{
    /** Its path in the pack. */
    path: string;
    /** The blob with the text. */
    ref: string;
    /** Bytes. */
    size: number;
  }>;
  /** Secrets that it, its tools and its skills need. */
  secrets?: Array<string>;
  /** Sequence of the event that has the manifest. */
  seq: number;
  /**
   * Public nkey whose signature makes the manifest trusted; absent if the grant names its
   * hash.
   */
  signer?: string;
  /** The pack. */
  space: string;
  /** Its tools. */
  tools?: Array<string>;
  /** Its version. */
  version: string;
}

/** A stored file. */
export interface Blob {
  /** Handle for the parts of this session's requests. */
  blob: string;
  /** Unix milliseconds: until when the handle is good. */
  expires: number;
  /** Media type, by the content. */
  media_type: string;
  /** Size in bytes. */
  size: number;
}

/**
 * Limits what a run and its session may use. It is checked before each turn. An absent field
 * is no limit.
 */
export interface Budget {
  /** Cost of the run, in micro-units by its prices. */
  cost?: number;
  /** When a budget is spent, the run is paused (the default) or fails. */
  on_breach?: 'pause' | 'fail';
  /** Cost of all runs, in micro-units. */
  session_cost?: number;
  /** Tokens of all runs, input and output. */
  session_tokens?: number;
  /** Tokens of the run, input and output. */
  tokens?: number;
}

/** A tool call. */
export interface Call {
  /** Hash of the arguments, which a decision names. Of a call that waits for a person. */
  args_hash?: string;
  /**
   * JSON as the model wrote it. Absent if it is too large for an event: then the view and the
   * approvals have it.
   */
  arguments?: string;
  /** Its name in the session. */
  call: string;
  /** Why it did not succeed. */
  code?: string;
  /** Detail of the code, for people. */
  detail?: string;
  /** How it ended. Absent before. */
  status?: 'succeeded' | 'failed' | 'cancelled' | 'outcome_unknown' | 'ignored';
  /** The tool, as the model calls it. */
  tool: string;
}

/** Sets a session's own config. */
export interface ConfigRequest {
  /**
   * The data of SessionConfigured, as docs/protocol.md describes it. It replaces the
   * session's config as a whole.
   */
  config: Record<string, unknown>;
}

/** A person's decision over a call. */
export interface Decision {
  /** Hash of the arguments that the person was shown. */
  args_hash: string;
  /** JSON with which an approved call runs in place of the model's. */
  arguments?: string;
  /** What was decided. */
  decision: 'approve' | 'deny';
  /** Hash of the manifest that the person was shown, if the call would enable a pack. */
  manifest?: string;
  /** Why it is denied, which the model is shown. */
  reason?: string;
}

/** Sets facts. */
export interface FactsRequest {
  /** Values by name; null removes a fact. */
  facts: Record<string, string | null>;
}

/** Ends a run that waits for input as failed. */
export interface FailRequest {
  /** The run's code, for programs; `explicit` if absent. */
  code?: string;
  /** For people. */
  reason?: string;
}

/** The state of the server. */
export interface Health {
  /** The server works. */
  status: 'ok';
}

/** A working directory on a host, in which the tools of a session work. */
export interface HostSession {
  /** The host's name for it. */
  id?: string;
  /**
   * Its working directory as paths there see it: an absolute path. Paths in resource keys are
   * relative to it. It stays with the `id` until another one is reported. Without it an
   * absolute path gives the bare key.
   */
  root?: string;
  /**
   * The worker that holds it. If it is a target below the executor's, such as `host-w1` for
   * `host`, later calls of tools that need a ready host session go to that target; a route of
   * another form is for people.
   */
  route?: string;
  /** Only ready makes the tools of a host available. none forgets the host session. */
  status: 'ready' | 'closed' | 'expired' | 'error' | 'none';
}

/** An answer: an output, or why there is none. */
export interface LinkReply {
  /** In place of an output: why nobody answers, which the model is shown. */
  declined?: string;
  /** The answer. If the call has a schema, it is one JSON text that fits. */
  output?: string;
}

/** The budget that a run exceeded, and by how much. */
export interface OverBudget {
  /** The field of the run's budget, the first in this order. */
  budget: 'tokens' | 'cost' | 'session_tokens' | 'session_cost';
  /** The limit, in tokens or micro-units. */
  limit: number;
  /** What was used, in the same unit: more than the limit. */
  used: number;
}

/**
 * Changes lists of tools. A given list replaces the old one, an empty one clears it, and an
 * absent one leaves it.
 */
export interface OverridesRequest {
  /** Tools that are not offered, whatever else names them. */
  disable?: Array<string>;
  /** Tools to add to the profile. */
  enable?: Array<string>;
  /** Tools to add to any list. */
  force?: Array<string>;
  /** The session's lists, or those of the active run, which end with it. */
  scope: 'session' | 'run';
}

/** A pack of tools that a call would enable. */
export interface PackShown {
  /** Hash of its manifest: an approval names it. */
  manifest: string;
  /** Its name. */
  name: string;
  /** The key that signed it. Absent: the grant names its hash. */
  signer?: string;
  /** All of its texts that a model is shown, by path. */
  texts?: Record<string, string>;
}

/** A call that a session carries out for another one. */
export interface ParentCall {
  /** The call's name in it. */
  call: string;
  /** The session whose call it is. */
  session: string;
}

/** A part of an input: a text, or a stored file. */
export interface Part {
  /** The handle of a stored file. */
  blob?: string;
  /** A text. */
  text?: string;
}

/** Says why a request was refused, as RFC 9457 has it. */
export interface Problem {
  /**
   * For programs. A code of HTTP or of this server: unauthorized, there is no valid token;
   * forbidden, the token lacks a right, or may not name the agent; host_refused, the header
   * Host names none of the server's hosts; origin_refused, the page's origin is not on the
   * list; not_found, there is no such path; method_not_allowed, the path has no such method;
   * bad_request, the body, the query or a header can't be read; unsupported_media_type, the
   * body has another media type; too_large, the body has more bytes than the operation takes;
   * too_many_requests, this token's requests come too fast; too_many_streams, this token has
   * too many streams; quota_exceeded, this token's files of a day have too many bytes;
   * no_session, the log has no event of the session; no_event, the session has no such event;
   * no_turn, the session has no such turn; no_run, the session has no such run; no_call, the
   * session has no such call that waits; no_link, the reply link is not of this server;
   * link_expired, the reply link has expired; no_agent, the server has no agent of the name;
   * bad_blob, the handle is not of this session, or has expired; no_regenerate, a session
   * does not answer a message again; not_quarantined, the session is not stopped, or not as
   * the request says; text_in_use, the text of an event can't be removed now; quarantined,
   * the session is stopped, and an operator must act; no_session_actor, no session-actor
   * answers; server_lacks_right, the server's own NATS user lacks a right; unavailable, the
   * server doesn't reach the log; timeout, the operation took too long; internal, a fault of
   * the server, which its log has. Or why the session refused it: undecodable, neither JSON
   * nor msgpack, or no envelope; unsupported_version, `v` is not 1; unknown_type, there is no
   * such event; wrong_door, the event is not accepted through this door; not_permitted, the
   * install policy keeps a field of the config to `ctl`; the budget of a RunResumeRequested
   * through `in`; a reply through `in` that approvers alone may give; arguments that the
   * policy denies; or a sync that the grant of its space does not permit; invalid_data,
   * unknown field, wrong type, bad value; duplicate_event, the session accepted an event with
   * this id before; duplicate_submission, the same submission with other content;
   * agent_changed, the request names a definition that is not the session's; stale, about an
   * effect of an earlier turn, a batch before the latest, or a run that is neither active nor
   * queued; or a reply to a call that has a result, or that waits with other arguments;
   * session_closed, the session was closed; session_erased, the session was erased:
   * everything but a tombstone of session-actors is rejected; session_held, the session is
   * held: SessionErased is rejected until a SessionHeld releases it; approval_stale, the call
   * does not wait for approval, or waits with other arguments; run_active, a run is active,
   * and `when_busy` is `reject`; queue_full, `queue_max` runs wait already; missing_provider,
   * no config names one; missing_model, no config names one; unknown_profile, the registry
   * has no such profile; unknown_tool, the registry has no such tool, or binds no such
   * descriptor; invalid_registry, it is faulty, it lacks something that the session, a run or
   * a rule names, or it has a name of an applied pack's tool; registry_loosens, the registry
   * binds a tool more loosely than the install record does: the detail says which tool, and
   * in what; invalid_rule, a step rule is invalid: the detail says which, and where in its
   * `when`; run_not_active, there is no active run; unknown_schedule, the session has no such
   * schedule; unknown_effect, the session never opened it, or has no such batch;
   * effect_settled, it already has another settlement; batch_mismatch, the results are not
   * the batch's: a call is missing, named twice, open at a bridge, or has another result;
   * plan_mismatch, of another plan than the batch's; unknown_call, the batch has no such
   * call; illegal_transition, not possible in this state: of a run that does not accept the
   * request, or of a call whose group has not begun or that waits for a person;
   * unknown_space, no grant is about the space, or there is nothing to detach;
   * nothing_staged, the apply has nothing to apply; workspace_invalid, the workspace lacks a
   * name, or the place in the detail names something that would be gone; limit_exceeded, over
   * a limit; the detail names it.
   */
  code: 'agent_changed' | 'approval_stale' | 'bad_blob' | 'bad_request' | 'batch_mismatch' | 'duplicate_event' | 'duplicate_submission' | 'effect_settled' | 'forbidden' | 'host_refused' | 'illegal_transition' | 'internal' | 'invalid_data' | 'invalid_registry' | 'invalid_rule' | 'limit_exceeded' | 'link_expired' | 'method_not_allowed' | 'missing_model' | 'missing_provider' | 'no_agent' | 'no_call' | 'no_event' | 'no_link' | 'no_regenerate' | 'no_run' | 'no_session' | 'no_session_actor' | 'no_turn' | 'not_found' | 'not_permitted' | 'not_quarantined' | 'nothing_staged' | 'origin_refused' | 'plan_mismatch' | 'quarantined' | 'queue_full' | 'quota_exceeded' | 'registry_loosens' | 'run_active' | 'run_not_active' | 'server_lacks_right' | 'session_closed' | 'session_erased' | 'session_held' | 'stale' | 'text_in_use' | 'timeout' | 'too_large' | 'too_many_requests' | 'too_many_streams' | 'unauthorized' | 'unavailable' | 'undecodable' | 'unknown_call' | 'unknown_effect' | 'unknown_profile' | 'unknown_schedule' | 'unknown_space' | 'unknown_tool' | 'unknown_type' | 'unsupported_media_type' | 'unsupported_version' | 'workspace_invalid' | 'wrong_door';
  /** For people: what was wrong, and what to do. */
  detail: string;
  /** The HTTP status. */
  status: number;
  /** The status in words. */
  title: string;
  /** about:blank: the code tells kinds of problems apart. */
  type: 'about:blank';
}

/** Selects a profile. */
export interface ProfileRequest {
  /** A profile of the session's registry. */
  profile: string;
}

/** A call that waits for a reply. */
export interface Question {
  /** Hash of the arguments: a reply names it. */
  args_hash: string;
  /** JSON: what is asked. */
  arguments: string;
  /** Who may answer: those with the right approve alone, or also those with the right ask. */
  by: 'approvers' | 'clients';
  /** The call's name in the session. */
  call: string;
  /** Unix milliseconds, after which the call fails. */
  deadline?: number;
  /** The calls above a session that is a child: its own first, the root's last. */
  parents?: Array<ParentCall>;
  /** The run. */
  run: number;
  /** The session. */
  session: string;
  /** The tool, as the model calls it. */
  tool: string;
  /** The tool. */
  tool_id: string;
}

/** The calls that wait for a reply. */
export interface QuestionList {
  /** The calls, by session. */
  questions: Array<Question>;
}

/** The body of a control. */
export interface Reason {
  /** For people. */
  reason?: string;
}

/** An event whose text was removed. */
export interface Redacted {
  /** Blobs that it named. `refold blobs sweep` deletes them if nothing else names them. */
  blobs: number;
  /** Dead letters of webhooks that had its text, and were deleted. */
  dead_letters: number;
  /** Notices that had its text, and were deleted. */
  notices: number;
  /** Sequence of the event in the log. */
  seq: number;
  /** Its type. */
  type: string;
}

/** Replaces a session's registry. */
export interface RegistryRequest {
  /** The data of ToolRegistrySet, as docs/protocol.md describes it. */
  registry: Record<string, unknown>;
}

/** Answers a call that waits for it. */
export interface Reply {
  /** Hash of the arguments that were answered. */
  args_hash: string;
  declined?: string;
  output?: string;
}

/** Lets a paused run go on. */
export interface ResumeRequest {
  /**
   * Replaces the run's budget as a whole, and needs the right `operate`: a run that its
   * budget paused goes on with a larger one alone. {} is no limit.
   */
  budget?: Record<string, unknown>;
  /** For people. */
  reason?: string;
}

/** A request that the session has taken. */
export interface RunAccepted {
  /** Position before the run's first update: follow the session after it. */
  position: string;
  /** The run that it became, or whose input it is. */
  run: number;
  /** Sequence of the request in the log. */
  seq: number;
}

/** Requests a run. */
export interface RunRequest {
  /**
   * An agent of the server. Absent: the agent `default`; without one, what the session was
   * given, or the install record.
   */
  agent?: string;
  /** The run's own config in place of the agent's: needs the right `operate`. */
  config?: Record<string, unknown>;
  /** The user's input: a text, or a list of parts. */
  input: string | Array<Part>;
  /**
   * What to do while another run is active: wait (`queue`, if absent), become input of that
   * run (`steer`), end it and be next (`interrupt`), or be refused with `run_active`
   * (`reject`).
   */
  when_busy?: 'queue' | 'steer' | 'interrupt' | 'reject';
}

/** A run as it is now. */
export interface RunState {
  /** The run's tool calls, in the order in which they ended. */
  calls?: Array<Call>;
  /** Why it failed. */
  code?: string;
  /** Its cost in micro-units, by the prices of its config. */
  cost?: number;
  /** Detail of the code, for people. */
  detail?: string;
  /** It has ended: the rest is final. */
  ended: boolean;
  /** Why the model ended its answer, if not by itself. */
  finish_reason?: string;
  /**
   * queued, running, waiting_input, paused or interrupting; or, at its end, completed,
   * failed, cancelled or interrupted.
   */
  lifecycle: 'queued' | 'running' | 'waiting_input' | 'paused' | 'interrupting' | 'completed' | 'failed' | 'cancelled' | 'interrupted';
  /** Number in the session, from 1. */
  run: number;
  /** The answer. Absent before the end. */
  text?: string;
  /** Number of its turns. */
  turns?: number;
  /** What its turns used. */
  usage?: UsageTotal;
}

/** A schedule of a session. */
export interface Schedule {
  /** What happens to firings that were missed; `last` if absent. */
  catch_up?: 'last' | 'none';
  /** The cron expression. */
  cron: string;
  /**
   * When it fires next, Unix milliseconds: `next` and a part of a minute that depends on the
   * names of session and schedule. Absent: it is paused.
   */
  due?: number;
  /** Runs that have failed since one completed. */
  failures?: number;
  /** The time of the expression that fired last, Unix milliseconds. */
  last?: number;
  /** Its name. */
  name: string;
  /** The next time of the expression, Unix milliseconds. Absent: it is paused. */
  next?: number;
  /** Why it is paused. Absent: it is not. */
  paused?: 'request' | 'failed' | 'no_next' | 'bad_settlement';
  /** Its revision: the sequence of its ScheduleSet, which has the input of the runs. */
  rev: number;
  /** Roles of the runs. */
  roles?: Array<string>;
  /** What to do while a run is active; `skip` if absent. */
  when_busy?: 'skip' | 'queue' | 'interrupt';
  /** Zone of the times; UTC if absent. */
  zone?: string;
}

/** The schedules of a session. */
export interface ScheduleList {
  /** The schedules, by name. */
  schedules: Array<Schedule>;
}

/** Says at which times a session requests a run. */
export interface ScheduleRequest {
  /**
   * What happens to times that were missed: the last one fires late (`last`, if absent), or
   * none (`none`).
   */
  catch_up?: 'last' | 'none';
  /** Config of the runs, with a provider and a model. Absent: the session's when it fires. */
  config?: Record<string, unknown>;
  /**
   * Minute, hour, day of the month, month and day of the week, as in `0 9 * * 1-5`; or a
   * word, such as @daily.
   */
  cron: string;
  /** The input of the runs: a text, or a list of parts. */
  input: string | Array<Part>;
  /** The revision that this replaces; another one is refused as `stale`. Absent: any. */
  rev?: number;
  /**
   * What to do while a run is active: nothing (`skip`, if absent), wait (`queue`), or end it
   * and be next (`interrupt`).
   */
  when_busy?: 'skip' | 'queue' | 'interrupt';
  /** Zone of the times: a name of the IANA database, such as Europe/Berlin; UTC if absent. */
  zone?: string;
}

/** Names the firing that requested a run. */
export interface Scheduled {
  /** The time of the expression, Unix milliseconds. */
  at: number;
  /** The schedule. */
  name: string;
  /** Its revision. */
  rev: number;
}

/** A page of a list. */
export interface SessionList {
  /** Cursor of the next page. Absent: this is the last one. */
  next?: string;
  /** The sessions. */
  sessions: Array<SessionRow>;
}

/** What a list has of a session. */
export interface SessionRow {
  /** Unix milliseconds of its latest activity. */
  at?: number;
  calls?: Array<string>;
  closed?: boolean;
  code?: string;
  cost?: number;
  deadline?: number;
  detail?: string;
  erased?: boolean;
  lifecycle?: 'running' | 'waiting_input' | 'paused' | 'interrupting' | 'completed' | 'failed' | 'cancelled' | 'interrupted';
  model?: string;
  next_firing?: number;
  parent?: string;
  provider?: string;
  quarantined?: boolean;
  queued?: number;
  root?: string;
  run?: number;
  /** The session. */
  session: string;
  spent?: boolean;
  /** The lifecycle of the latest run, or open, closed, quarantined, unknown or silent. */
  state: string;
  text?: string;
  text_seq?: number;
  tokens?: number;
  waits_for?: 'nobody' | 'model' | 'tools' | 'step' | 'host_loop' | 'approval' | 'reply' | 'session' | 'clock' | 'input' | 'resume' | 'retry' | 'space';
}

/** More input for the active run. */
export interface SteerRequest {
  /** The user's input: a text, or a list of parts. */
  input: string | Array<Part>;
}

/**
 * What a list shows of a session. The last notice about an event has it, so a list reads the
 * last message of each session and nothing else.
 */
export interface Summary {
  /**
   * In place of the text of an answer without one: names of the tools that it calls, the
   * first four.
   */
  calls?: Array<string>;
  /** The session accepts no more runs; false if absent. */
  closed?: boolean;
  /** Why the last run ended. Absent while a run is active. */
  code?: string;
  /** Cost of all runs so far, in micro-units by their prices; 0 if absent. */
  cost?: number;
  /** Deadline of the active run, Unix milliseconds. While it is paused it stands still. */
  deadline?: number;
  /** Detail of the code, for people. */
  detail?: string;
  /** The session was erased; false if absent. It is closed, too. */
  erased?: boolean;
  /** State of the active run, else of the run that ended last. Absent: there was none. */
  lifecycle?: 'running' | 'waiting_input' | 'paused' | 'interrupting' | 'completed' | 'failed' | 'cancelled' | 'interrupted';
  /** The model, from the same config. */
  model?: string;
  /** When a schedule requests a run next, Unix milliseconds. Absent: none does. */
  next_firing?: number;
  /** The session whose call this one carries out. Absent: it is no child. */
  parent?: string;
  /**
   * Provider of the active run, or of the run that this event ended; else of the config that
   * the next run has if it brings none.
   */
  provider?: string;
  /** The session is stopped; false if absent. The rest is as of the notice before. */
  quarantined?: boolean;
  /** Number of queued runs; 0 if absent. */
  queued?: number;
  /** Of a child: the session at the top of the tree. */
  root?: string;
  /** Number of the active run, else of the run that ended last. */
  run?: number;
  /** Whether the active run is paused because its budget is spent; false if absent. */
  spent?: boolean;
  /**
   * The beginning of the transcript's latest input or answer, if this event has it: at most
   * 200 characters, with … at the end if there is more.
   */
  text?: string;
  /** In place of text and calls: sequence of the event that has them. */
  text_seq?: number;
  /** Input and output tokens of all runs so far; 0 if absent. */
  tokens?: number;
  /** What the session waits for, as in the view. */
  waits_for?: 'nobody' | 'model' | 'tools' | 'step' | 'host_loop' | 'approval' | 'reply' | 'session' | 'clock' | 'input' | 'resume' | 'retry' | 'space';
}

/** A control that the session has taken. */
export interface Taken {
  /** Sequence of the event in the log. */
  seq: number;
}

/** Says why effects of a target are not settled. */
export interface Trouble {
  /**
   * The code of the latest failure, such as `network`, `overloaded`, `rate_limited`, `auth`
   * or `deadline_exceeded`; `lacks`, if the target is served without something that it needs,
   * such as a key; `executor`, if the executor reports the trouble; `newer_effect`, if the
   * bridge is too old for an effect and gave it back; or, in a view alone, `bridge_silent` or
   * `stalled`.
   */
  code: string;
  /** For people. Bridges remove the secrets that they were given, and send at most 200 bytes. */
  detail?: string;
  /** Of a view: the effects that wait for it. */
  effects?: Array<string>;
  /** Unix milliseconds: the next attempt, which may be under way. Absent: there is none. */
  next?: number;
  /** Unix milliseconds: the first failure since the last answer. */
  since?: number;
  /** class/target */
  target: string;
}

/** One thing that happened in a session. The position is the id of its event. */
export type Update = UpdateFields & (
  | { type: 'text'; turn: number; delta: string }
  | { type: 'tool_asked' | 'tool_ended' | 'approval_asked' | 'approval_decided' | 'reply_asked'; call: Call }
  | { type: 'run_ended'; lifecycle: 'completed' | 'failed' | 'cancelled' | 'interrupted' }
  | { type: 'text_restarted' | 'run_queued' | 'run_started' | 'run_paused' | 'run_resumed' | 'waiting' | 'partial' }
);

/** The fields that any Update may have. */
export interface UpdateFields {
  /**
   * What happened: the model wrote text; its text of a turn is void, and begins again; it
   * made a call; a call ended; a call waits for a person; a person decided over it; a call
   * waits for a reply; a run waits for another, began, is paused, goes on, or ended; the run
   * waits for something that is in trouble, and without a cause, that it goes on; or the
   * server may not read the log, so updates lack what only the log tells.
   */
  type: 'text' | 'text_restarted' | 'tool_asked' | 'tool_ended' | 'approval_asked' | 'approval_decided' | 'reply_asked' | 'run_queued' | 'run_started' | 'run_paused' | 'run_resumed' | 'run_ended' | 'waiting' | 'partial';
  /** Of tools, approvals and replies: the call. */
  call?: Call;
  /** Of waiting: unserved, silent, or the code of the latest failure. Absent: it goes on. */
  cause?: string;
  /** Of run_ended: why it failed. */
  code?: string;
  /** Of approval_decided: approve or deny. */
  decision?: 'approve' | 'deny';
  /** Of text: what the model wrote since the text before. */
  delta?: string;
  /** Of run_ended and waiting: for people. */
  detail?: string;
  /** Of waiting: what for: model, tool, step, space or session-actor. */
  for?: string;
  /** Of run_ended: how. */
  lifecycle?: 'completed' | 'failed' | 'cancelled' | 'interrupted';
  /** Of approval_decided: why. */
  reason?: string;
  /** The run. Absent if it is not about one. */
  run?: number;
  /** Of waiting: Unix milliseconds, since when. */
  since?: number;
  /** Of waiting: what bridges serve, such as a provider. */
  target?: string;
  /** Of text and text_restarted: the turn. */
  turn?: number;
  /** Of run_ended: how many turns it had. */
  turns?: number;
}

/** The sum of several usages, in tokens. */
export interface UsageTotal {
  /** Input tokens written to the provider's cache. Absent if there were none. */
  cache_write_tokens?: number;
  /** Input tokens read from the provider's cache. */
  cached_tokens: number;
  /** Tokens shown to the model. */
  input_tokens: number;
  /** Tokens that the model wrote. */
  output_tokens: number;
  /** Output tokens of reasoning, which is not shown. */
  reasoning_tokens: number;
}

/**
 * A session's state, for people and programs: the answer to a request on
 * refold.view.<session>.
 */
export interface View {
  /** The calls of the latest turn. */
  batch?: {
    /** The turn. */
    batch: string;
    /** The calls, in the model's order. */
    calls: Array<{
      /**
       * Of a call that awaits approval, or an answer: the decision or reply repeats it.
       * Absent while its pack is being read: nobody can decide yet.
       */
      args_hash?: string;
      /**
       * JSON text, for a call that awaits approval, a call without a result that needs no
       * bridge, or a bridge's call that is not open yet. Absent if the arguments of the calls
       * up to this one exceed 128 KiB together: see seq.
       */
      arguments?: string;
      /** Of kind reply: who may answer. */
      by?: 'approvers' | 'clients';
      /** Of kind session: the session whose run carries the call out, while it is open. */
      child?: string;
      /** Code of a result that the session gave. */
      code?: string;
      /**
       * Deadline of the approval, or of a call without a bridge: Unix milliseconds. The
       * latter is absent until its group has begun. A call of kind sleep ends then.
       */
      deadline?: number;
      /** Detail of the result, or of the reason. */
      detail?: string;
      /** The call's name, whether it was opened or not. */
      effect: string;
      /** Set if a host loop must still carry the call out: the target of its executor. */
      host_loop?: string;
      /** Of a host loop's call: <session>.<effect>, the same at every start. */
      idempotency_key?: string;
      /** Of a call without a result that needs no bridge: the kind of its executor. */
      kind?: 'host_loop' | 'reply' | 'sleep' | 'session';
      /** Of a call that awaits approval: the pack that it would enable. */
      pack?: ApprovalPack;
      /** Of a host loop's call: whether it may run twice; false if absent. */
      retry_safe?: boolean;
      /** Status of the call. */
      status: 'waiting' | 'awaiting_approval' | 'open' | 'succeeded' | 'failed' | 'cancelled' | 'outcome_unknown' | 'ignored';
      /** Absent: the registry has no such tool. */
      tool_id?: string;
      /** The tool's name as the model wrote it. */
      tool_name: string;
    }>;
    /** Number of calls beyond the 64 that may run. */
    excess?: number;
    /** Index of the open group; the number of groups when all are done. */
    group: number;
    /** The plan: positions in calls that may run concurrently, group by group. */
    groups: Array<Array<number>>;
    plan_hash: string;
    /** Sequence of the ToolCallsObserved, which holds every call's arguments. */
    seq: number;
  };
  /** Hash chain (BLAKE2b-256) over all events. */
  chain?: string;
  /** The children that the session waits for or may continue. Earlier ones are closed. */
  children?: Array<{
    /** The call. Of a child that is kept: the latest one. */
    call: string;
    /** The child. */
    session: string;
    /**
     * open: the call waits for it. stopping: the call has ended, and what the child used is
     * not known yet. kept: a later call may continue it.
     */
    state: 'open' | 'stopping' | 'kept';
  }>;
  /** Unix milliseconds: the greatest timestamp of an event, or due time of a wake, so far. */
  clock?: number;
  /** Cost of all runs, in micro-units by their prices; 0 if absent. */
  cost?: number;
  /** Number of folded events, including rejected ones. */
  events?: number;
  /** The session's facts, by name. */
  facts?: Array<{
    /** The fact. */
    name: string;
    /** Its value. */
    value: string;
  }>;
  /** BLAKE2b-256 of the state's canonical bytes. */
  hash?: string;
  /** The session can't be erased until it is released; false if absent. */
  held?: boolean;
  host_session?: HostSession;
  /** Hash of the pinned install record. */
  install?: string;
  /** Length of the transcript. */
  items?: number;
  /** The run that ended last. */
  last?: {
    /** Why the run ended. */
    code?: string;
    /** Detail for people. */
    detail?: string;
    /**
     * Why the answer that ended the run ended, or the one with which it waited for input, if
     * not by stop.
     */
    finish_reason?: string;
    /** How the run ended. */
    lifecycle: 'completed' | 'failed' | 'cancelled' | 'interrupted';
    /** The run. */
    number: number;
    /** The budget that was exceeded. Absent: the run ended within its budget. */
    over_budget?: OverBudget;
  };
  /** State of the active run, else of the run that ended last; empty if there was none. */
  lifecycle?: '' | 'running' | 'waiting_input' | 'paused' | 'interrupting' | 'completed' | 'failed' | 'cancelled' | 'interrupted';
  /** Open effects: the turn's, then syncs, then wakes. */
  open?: Array<{
    /** The class of the effect. */
    class: 'llm' | 'tool' | 'wake' | 'step' | 'space';
    /** Unix milliseconds: when a wake settles the effect. */
    deadline: number;
    /** Its name. */
    effect: string;
    /** The target. */
    target: string;
  }>;
  /** The session's lists. */
  overrides?: {
    /** Tools that are not offered. */
    disable?: Array<string>;
    /** Tools added to the profile. */
    enable?: Array<string>;
    /** Tools added to any list. */
    force?: Array<string>;
  };
  /**
   * The applied ones, in the order in which they were requested: with `tools`, the tool_ids
   * of each.
   */
  packs?: Array<{
    /** Hash of its manifest. */
    hash: string;
    /** Needs that are not met on the reader's machine. */
    lacks?: Array<string>;
    /** Mode of a pending space. */
    mode?: 'next_run' | 'next_step_boundary' | 'immediate_if_idle';
    /** The effective prompt pack; of a staged or pending space, the one chosen. */
    prompt_pack?: string;
    space: string;
    /** As prompt_pack, for the catalog. */
    tool_catalog?: string;
    /** Of an applied pack: the tools of the pack. */
    tools?: Array<string>;
    /** Version of the manifest. */
    version?: string;
  }>;
  /** Whose call the session carries out. Absent: it is no child. */
  parent?: {
    /** The call. */
    call: string;
    /** 1: the parent is no child. */
    depth: number;
    /** The session at the top of the tree. */
    root: string;
    /** The session whose call it is. */
    session: string;
  };
  /**
   * Spaces that wait for their boundary, in the order of their requests: a workspace and
   * packs.
   */
  pending?: Array<{
    /** Hash of its manifest. */
    hash: string;
    /** Needs that are not met on the reader's machine. */
    lacks?: Array<string>;
    /** Mode of a pending space. */
    mode?: 'next_run' | 'next_step_boundary' | 'immediate_if_idle';
    /** The effective prompt pack; of a staged or pending space, the one chosen. */
    prompt_pack?: string;
    space: string;
    /** As prompt_pack, for the catalog. */
    tool_catalog?: string;
    /** Of an applied pack: the tools of the pack. */
    tools?: Array<string>;
    /** Version of the manifest. */
    version?: string;
  }>;
  /** The profile selected for the session. */
  profile?: string;
  /**
   * The session is stopped; the rest of the view is as of the event before. Without a state
   * to show, the view has only this and the session.
   */
  quarantined?: {
    /** Why it is stopped. */
    reason: string;
    /** Sequence of its first event that is not processed. */
    seq: number;
  };
  /** Queued runs, the next one first. */
  queue?: Array<{
    /** Number of the attempt of the latest turn's generation, from 1. */
    attempt?: number;
    /** Budget of its config, or as raised since. */
    budget?: Budget;
    /** What step rules and hooks have set. */
    context?: Record<string, unknown>;
    /** Cost so far, in micro-units by its prices; 0 if absent. */
    cost?: number;
    /** The run's, Unix milliseconds. While it is paused it stands still. */
    deadline?: number;
    /** The entry of its config's fallback that is asked in their place, from 1. Absent: none. */
    fallback?: number;
    /** Why the answer ended with which the run waits for input, if not by stop. */
    finish_reason?: string;
    /** Model of its config. */
    model: string;
    /** Runs count from 1. */
    number: number;
    /** The run's own lists: of its config, or set since. */
    overrides?: {
      /** Tools that are not offered. */
      disable?: Array<string>;
      /** Tools added to the profile. */
      enable?: Array<string>;
      /** Tools added to any list. */
      force?: Array<string>;
    };
    /** Provider of its config. */
    provider: string;
    /** Turns begun to repair an answer, since the latest good one. */
    repairs?: number;
    /** Unix milliseconds: when the failed generation is opened again. */
    retry_at?: number;
    /** Roles of the request. */
    roles?: Array<string>;
    /** The firing of a schedule that requested it. */
    scheduled?: Scheduled;
    /** Sequence of the event with its input. */
    seq: number;
    /** Whether it is paused because its budget is spent; false if absent. */
    spent?: boolean;
    /** Sequences of the steers that no turn has taken yet. */
    steers?: Array<number>;
    /** Submission of the request. */
    submission?: string;
    /** Number of turns opened so far. */
    turns: number;
    /** Number of turns that it may open. */
    turns_max: number;
    /** Usage of the run. */
    usage: UsageTotal;
    /**
     * The tool_ids that were carried out in earlier turns, which `used` in a condition tests:
     * only those of the turn's registry.
     */
    used?: Array<string>;
    /** Of its config: the manifest that it uses in place of the applied one, or none. */
    workspace?: string;
  }>;
  /**
   * Hash of the registry that the next turn is offered from: the session's own, else the
   * install record's.
   */
  registry?: string;
  /** Version of the rules that the session follows. */
  rules?: number;
  /** The active run. */
  run?: {
    /** Number of the attempt of the latest turn's generation, from 1. */
    attempt?: number;
    /** Budget of its config, or as raised since. */
    budget?: Budget;
    /** What step rules and hooks have set. */
    context?: Record<string, unknown>;
    /** Cost so far, in micro-units by its prices; 0 if absent. */
    cost?: number;
    /** The run's, Unix milliseconds. While it is paused it stands still. */
    deadline?: number;
    /** The entry of its config's fallback that is asked in their place, from 1. Absent: none. */
    fallback?: number;
    /** Why the answer ended with which the run waits for input, if not by stop. */
    finish_reason?: string;
    /** Model of its config. */
    model: string;
    /** Runs count from 1. */
    number: number;
    /** The run's own lists: of its config, or set since. */
    overrides?: {
      /** Tools that are not offered. */
      disable?: Array<string>;
      /** Tools added to the profile. */
      enable?: Array<string>;
      /** Tools added to any list. */
      force?: Array<string>;
    };
    /** Provider of its config. */
    provider: string;
    /** Turns begun to repair an answer, since the latest good one. */
    repairs?: number;
    /** Unix milliseconds: when the failed generation is opened again. */
    retry_at?: number;
    /** Roles of the request. */
    roles?: Array<string>;
    /** The firing of a schedule that requested it. */
    scheduled?: Scheduled;
    /** Sequence of the event with its input. */
    seq: number;
    /** Whether it is paused because its budget is spent; false if absent. */
    spent?: boolean;
    /** Sequences of the steers that no turn has taken yet. */
    steers?: Array<number>;
    /** Submission of the request. */
    submission?: string;
    /** Number of turns opened so far. */
    turns: number;
    /** Number of turns that it may open. */
    turns_max: number;
    /** Usage of the run. */
    usage: UsageTotal;
    /**
     * The tool_ids that were carried out in earlier turns, which `used` in a condition tests:
     * only those of the turn's registry.
     */
    used?: Array<string>;
    /** Of its config: the manifest that it uses in place of the applied one, or none. */
    workspace?: string;
  };
  /** The session's schedules, by name. */
  schedules?: Array<Schedule>;
  /** Sequence of the latest folded event. */
  seq?: number;
  session: string;
  /** The skills of the applied spaces. */
  skills?: Array<{
    /** Whether the skill is active in the active run. */
    active: boolean;
    skill: string;
    space: string;
    /** Why a model can't use it; absent: it can. */
    why?: string;
  }>;
  /** Spaces that were read and can be applied, by name. */
  staged?: Array<{
    /** Hash of its manifest. */
    hash: string;
    /** Needs that are not met on the reader's machine. */
    lacks?: Array<string>;
    /** Mode of a pending space. */
    mode?: 'next_run' | 'next_step_boundary' | 'immediate_if_idle';
    /** The effective prompt pack; of a staged or pending space, the one chosen. */
    prompt_pack?: string;
    space: string;
    /** As prompt_pack, for the catalog. */
    tool_catalog?: string;
    /** Of an applied pack: the tools of the pack. */
    tools?: Array<string>;
    /** Version of the manifest. */
    version?: string;
  }>;
  /** A closed session accepts no more runs. Of an erased one nothing is left. */
  status?: 'open' | 'closed' | 'erased';
  /** Syncs that are open. */
  syncs?: Array<{
    /** Unix milliseconds. */
    deadline: number;
    /** Its name. */
    effect: string;
    space: string;
  }>;
  /**
   * Every tool of the latest turn's registry, by tool_id. Absent until its generation is
   * opened.
   */
  tools?: Array<{
    /** Whether the latest turn offered it. */
    offered: boolean;
    /** Its place among the offered tools, from 1. */
    place?: number;
    tool_id: string;
    /** The name under which it was offered, else its own. */
    tool_name: string;
    /** offered, or the step that removed it, in words. */
    why: string;
  }>;
  /** The latest 100 items. */
  transcript?: Array<{
    /** Of role tool: the position of the call. */
    call?: number;
    /**
     * Code of a result that the session gave. Of a call that awaits approval: why it would
     * not run if it was approved now.
     */
    code?: string;
    /** Of role tool: sequence of the ApprovalDecided that changed the arguments. */
    edit?: number;
    /** Who wrote the entry. */
    role: 'user' | 'assistant' | 'tool';
    /** Sequence of the event. */
    seq: number;
    /**
     * What the model is shown: absent, all of it; 1, a line in the place of a result; 2, the
     * beginning and the end.
     */
    shown?: number;
  }>;
  /**
   * What keeps open effects, or the next attempt at a turn, waiting; each with the `effects`
   * that wait. Session-actors add to what bridges report: `stalled`, if they can store
   * nothing for the session, or a consumer is paused; `bridge_silent`, for a bridge that
   * began an effect and sends no heartbeats any more, and the failure of an attempt that the
   * run's `retry` repeats.
   */
  troubles?: Array<Trouble>;
  /** What decided the latest turn's offer. */
  turn?: {
    /** Where its tools come from. Absent until its generation is opened. */
    base?: 'profile' | 'step' | 'run' | 'catalog';
    /** The turn. */
    effect: string;
    /** The profile, if that is the base. */
    profile?: string;
    /** If the profile is the base: what chose it, or that there is none. */
    profile_why?: string;
    /**
     * What the model is shown before the transcript. Absent: at most the system text of the
     * step or the config.
     */
    prompt?: {
      /** Fingerprint (BLAKE2b-256) of what precedes the transcript. */
      mark: string;
      /** The parts, until the generation is settled. */
      parts?: Array<{
        /** Hash of the blob. */
        hash: string;
        /** Path of the file in the space. */
        path?: string;
        /** As in a Generation; absent: system text. */
        role?: 'user' | 'assistant' | 'document' | 'image' | 'skills' | 'skill';
        /** Size in bytes. */
        size?: number;
        /** The skills of an index of skills, or of a skill's text. */
        skills?: Array<string>;
        /** The space of the part. Absent: the part is one of the config's prompt_refs. */
        space?: string;
      }>;
    };
    /** Hash of the registry of its tools. */
    registry: string;
    /** The choice of a step rule or a hook. Absent: there are neither rules nor a hook. */
    step?: {
      /** Why the hook's answer does not count. */
      code?: string;
      /** Detail of the code. */
      detail?: string;
      /** Rules whose when could not be evaluated, and so did not hold. */
      failed?: Array<{
        /** Why. */
        code: 'when_failed' | 'when_too_costly';
        /** The rule, from 0. */
        rule: number;
      }>;
      /** Source of the choice that applies. Absent: none does. */
      from?: 'run' | 'profile' | 'hook';
      /** Whether the hook was called and has not answered. */
      open?: boolean;
      /** With from profile: the profile of the rules. */
      profile?: string;
      /** The rule that applies, from 0. */
      rule?: number;
      /** The number of the step in its run, from 0. */
      step: number;
    };
    /** Fingerprint (BLAKE2b-256) of the offered tools. Absent until its generation is opened. */
    toolset?: string;
    /** The workspace that the turn uses, with its run's choices while the run is active. */
    workspace?: {
      /** Hash of its manifest. */
      hash: string;
      /** Needs that are not met on the reader's machine. */
      lacks?: Array<string>;
      /** Mode of a pending space. */
      mode?: 'next_run' | 'next_step_boundary' | 'immediate_if_idle';
      /** The effective prompt pack; of a staged or pending space, the one chosen. */
      prompt_pack?: string;
      space: string;
      /** As prompt_pack, for the catalog. */
      tool_catalog?: string;
      /** Of an applied pack: the tools of the pack. */
      tools?: Array<string>;
      /** Version of the manifest. */
      version?: string;
    };
  };
  /**
   * Targets of open effects, as `llm/openai`, from whose bridges the session-actor that
   * answers has received no heartbeat for 1.5 seconds; absent while it can't tell.
   */
  unserved?: Array<string>;
  /** Usage of all runs. */
  usage?: UsageTotal;
  /**
   * Open effects come first. `tools`: a call is open at a bridge, and perhaps one at a host
   * loop too; `host_loop`: a call is open there, and perhaps one waits for a person too;
   * `space`: a call of `extensions_enable` waits for its sync; `approval`; `reply`: somebody
   * must answer a call, and perhaps a child is open or a call sleeps too; `session`: a child
   * is open; `clock`: a call sleeps. Then: `input` and `resume` of the run, or `retry`: the
   * run waits until a generation is retried.
   */
  waits_for?: 'nobody' | 'model' | 'tools' | 'step' | 'host_loop' | 'approval' | 'reply' | 'session' | 'clock' | 'input' | 'resume' | 'retry' | 'space';
  /** Limits of which nine tenths are used, and at which every later run fails. */
  warnings?: Array<{
    /**
     * What is limited. `items`: those of the transcript. `item_bytes`: what a generation
     * takes to list them.
     */
    limit: 'items' | 'item_bytes';
    /** How many there may be. The run that has more fails with `transcript_full`. */
    max: number;
    /** How many there are: at least nine tenths of them. */
    used: number;
  }>;
  /** How the transcript was shortened. Absent: it is shown whole. */
  window?: {
    /** A compaction that was requested, for the next generation. */
    asked?: {
      /** What the summary is to have, beside what the prompt asks for. */
      instructions?: string;
      /** The latest turns that stay as they are; none if absent. */
      keep_turns?: number;
    };
    /** Items of the transcript that left the window. */
    cut?: number;
    /** Sequence of the GenerationSettled with the summary; absent: there is none. */
    summary?: number;
    /** Tokens of the latest measured generation, as its provider counted them; 0: none yet. */
    tokens?: number;
  };
  /**
   * The applied one: `space`, `hash` (of its manifest), `version` (at most 64), `prompt_pack`
   * and `tool_catalog` (for a run that names none), `lacks` (at most 32).
   */
  workspace?: {
    /** Hash of its manifest. */
    hash: string;
    /** Needs that are not met on the reader's machine. */
    lacks?: Array<string>;
    /** Mode of a pending space. */
    mode?: 'next_run' | 'next_step_boundary' | 'immediate_if_idle';
    /** The effective prompt pack; of a staged or pending space, the one chosen. */
    prompt_pack?: string;
    space: string;
    /** As prompt_pack, for the catalog. */
    tool_catalog?: string;
    /** Of an applied pack: the tools of the pack. */
    tools?: Array<string>;
    /** Version of the manifest. */
    version?: string;
  };
}
