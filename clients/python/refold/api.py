"""The types of the HTTP API.

Written by generate.py from web/openapi.json. Do not edit it.
"""

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class Call:
    """A tool call."""

    # Its name in the session.
    call: str
    # The tool, as the model calls it.
    tool: str
    # Hash of the arguments, which a decision names. Of a call that waits for a person.
    args_hash: str = ""
    # JSON as the model wrote it. Absent if it is too large for an event: then the view and the
    # approvals have it.
    arguments: str = ""
    # Why it did not succeed.
    code: str = ""
    # Detail of the code, for people.
    detail: str = ""
    # How it ended. Absent before.
    status: Literal["succeeded", "failed", "cancelled", "outcome_unknown", "ignored"] | None = None


@dataclass(frozen=True, kw_only=True)
class UsageTotal:
    """The sum of several usages, in tokens."""

    # Input tokens read from the provider's cache.
    cached_tokens: int
    # Tokens shown to the model.
    input_tokens: int
    # Tokens that the model wrote.
    output_tokens: int
    # Output tokens of reasoning, which is not shown.
    reasoning_tokens: int
    # Input tokens written to the provider's cache. Absent if there were none.
    cache_write_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class RunState:
    """A run as it is now."""

    # It has ended: the rest is final.
    ended: bool
    # queued, running, waiting_input, paused or interrupting; or, at its end, completed, failed,
    # cancelled or interrupted.
    lifecycle: Literal["queued", "running", "waiting_input", "paused", "interrupting", "completed", "failed", "cancelled", "interrupted"]
    # Number in the session, from 1.
    run: int
    # The run's tool calls, in the order in which they ended.
    calls: list[Call] = field(default_factory=list)
    # Why it failed.
    code: str = ""
    # Its cost in micro-units, by the prices of its config.
    cost: int = 0
    # Detail of the code, for people.
    detail: str = ""
    # Why the model ended its answer, if not by itself.
    finish_reason: str = ""
    # The answer. Absent before the end.
    text: str = ""
    # Number of its turns.
    turns: int = 0
    # What its turns used.
    usage: UsageTotal | None = None


@dataclass(frozen=True, kw_only=True)
class RunAccepted:
    """A request that the session has taken."""

    # Position before the run's first update: follow the session after it.
    position: str
    # The run that it became, or whose input it is.
    run: int
    # Sequence of the request in the log.
    seq: int


@dataclass(frozen=True, kw_only=True)
class Update:
    """One thing that happened in a session. The position is the id of its event."""

    # Where it stands: updates go on after it. Opaque.
    position: str
    # What happened: the model wrote text; its text of a turn is void, and begins again; it made
    # a call; a call ended; a call waits for a person; a person decided over it; a call waits
    # for a reply; a run waits for another, began, is paused, goes on, or ended; the run waits
    # for something that is in trouble, and without a cause, that it goes on; or the server may
    # not read the log, so updates lack what only the log tells.
    type: Literal["text", "text_restarted", "tool_asked", "tool_ended", "approval_asked", "approval_decided", "reply_asked", "run_queued", "run_started", "run_paused", "run_resumed", "run_ended", "waiting", "partial"]
    # Of tools, approvals and replies: the call.
    call: Call | None = None
    # Of waiting: unserved, silent, or the code of the latest failure. Absent: it goes on.
    cause: str = ""
    # Of run_ended: why it failed.
    code: str = ""
    # Of approval_decided: approve or deny.
    decision: Literal["approve", "deny"] | None = None
    # Of text: what the model wrote since the text before.
    delta: str = ""
    # Of run_ended and waiting: for people.
    detail: str = ""
    # Of waiting: what for: model, tool, step, space or session-actor.
    for_: str = ""
    # Of run_ended: how.
    lifecycle: Literal["completed", "failed", "cancelled", "interrupted"] | None = None
    # Of approval_decided: why.
    reason: str = ""
    # The run. Absent if it is not about one.
    run: int = 0
    # Of waiting: Unix milliseconds, since when.
    since: int = 0
    # Of waiting: what bridges serve, such as a provider.
    target: str = ""
    # Of text and text_restarted: the turn.
    turn: int = 0
    # Of run_ended: how many turns it had.
    turns: int = 0


@dataclass(frozen=True, kw_only=True)
class PackShown:
    """A pack of tools that a call would enable."""

    # Hash of its manifest: an approval names it.
    manifest: str
    # Its name.
    name: str
    # The key that signed it. Absent: the grant names its hash.
    signer: str = ""
    # All of its texts that a model is shown, by path.
    texts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ParentCall:
    """A call that a session carries out for another one."""

    # The call's name in it.
    call: str
    # The session whose call it is.
    session: str


@dataclass(frozen=True, kw_only=True)
class Approval:
    """A call that waits for a person."""

    # Hash of the arguments: a decision names it.
    args_hash: str
    # JSON as the model wrote it; empty is {}.
    arguments: str
    # The call's name in the session.
    call: str
    # The run.
    run: int
    # The session.
    session: str
    # The tool, as the model calls it.
    tool: str
    # The tool.
    tool_id: str
    # Why the call would not run if it was approved now.
    code: str = ""
    # Unix milliseconds, after which the call is refused.
    deadline: int = 0
    # Detail of the code, for people.
    detail: str = ""
    # The pack that the call would enable.
    pack: PackShown | None = None
    # The calls above a session that is a child: its own first, the root's last.
    parents: list[ParentCall] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A call that waits for a reply."""

    # Hash of the arguments: a reply names it.
    args_hash: str
    # JSON: what is asked.
    arguments: str
    # Who may answer: those with the right approve alone, or also those with the right ask.
    by: Literal["approvers", "clients"]
    # The call's name in the session.
    call: str
    # The run.
    run: int
    # The session.
    session: str
    # The tool, as the model calls it.
    tool: str
    # The tool.
    tool_id: str
    # Unix milliseconds, after which the call fails.
    deadline: int = 0
    # The calls above a session that is a child: its own first, the root's last.
    parents: list[ParentCall] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A schedule of a session."""

    # The cron expression.
    cron: str
    # Its name.
    name: str
    # Its revision: the sequence of its ScheduleSet, which has the input of the runs.
    rev: int
    # What happens to firings that were missed; `last` if absent.
    catch_up: Literal["last", "none"] | None = None
    # When it fires next, Unix milliseconds: `next` and a part of a minute that depends on the
    # names of session and schedule. Absent: it is paused.
    due: int = 0
    # Runs that have failed since one completed.
    failures: int = 0
    # The time of the expression that fired last, Unix milliseconds.
    last: int = 0
    # The next time of the expression, Unix milliseconds. Absent: it is paused.
    next: int = 0
    # Why it is paused. Absent: it is not.
    paused: Literal["request", "failed", "no_next", "bad_settlement"] | None = None
    # Roles of the runs.
    roles: list[str] = field(default_factory=list)
    # What to do while a run is active; `skip` if absent.
    when_busy: Literal["skip", "queue", "interrupt"] | None = None
    # Zone of the times; UTC if absent.
    zone: str = ""


@dataclass(frozen=True, kw_only=True)
class SessionRow:
    """What a list has of a session."""

    # The session.
    session: str
    # The lifecycle of the latest run, or open, closed, quarantined, unknown or silent.
    state: str
    # Unix milliseconds of its latest activity.
    at: int = 0
    # In place of the text of an answer without one: names of the tools that it calls, the first
    # four.
    calls: list[str] = field(default_factory=list)
    # The session accepts no more runs; false if absent.
    closed: bool = False
    # Why the last run ended. Absent while a run is active.
    code: str = ""
    # Cost of all runs so far, in micro-units by their prices; 0 if absent.
    cost: int = 0
    # Deadline of the active run, Unix milliseconds. While it is paused it stands still.
    deadline: int = 0
    # Detail of the code, for people.
    detail: str = ""
    # The session was erased; false if absent. It is closed, too.
    erased: bool = False
    # State of the active run, else of the run that ended last. Absent: there was none.
    lifecycle: Literal["running", "waiting_input", "paused", "interrupting", "completed", "failed", "cancelled", "interrupted"] | None = None
    # The model, from the same config.
    model: str = ""
    # When a schedule requests a run next, Unix milliseconds. Absent: none does.
    next_firing: int = 0
    # A session: a token of a subject.
    parent: str = ""
    # A token of a subject: a provider, an executor, a profile.
    provider: str = ""
    # The session is stopped; false if absent. The rest is as of the notice before.
    quarantined: bool = False
    # Number of queued runs; 0 if absent.
    queued: int = 0
    # A session: a token of a subject.
    root: str = ""
    # Number of the active run, else of the run that ended last.
    run: int = 0
    # Whether the active run is paused because its budget is spent; false if absent.
    spent: bool = False
    # The beginning of the transcript's latest input or answer, if this event has it: at most
    # 200 characters, with … at the end if there is more.
    text: str = ""
    # In place of text and calls: sequence of the event that has them.
    text_seq: int = 0
    # Input and output tokens of all runs so far; 0 if absent.
    tokens: int = 0
    # What the session waits for, as in the view.
    waits_for: Literal["nobody", "model", "tools", "step", "host_loop", "approval", "reply", "session", "clock", "input", "resume", "retry", "space"] | None = None


@dataclass(frozen=True, kw_only=True)
class Blob:
    """A stored file."""

    # Handle for the parts of this session's requests.
    blob: str
    # Unix milliseconds: until when the handle is good.
    expires: int
    # Media type, by the content.
    media_type: str
    # Size in bytes.
    size: int


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A control that the session has taken."""

    # Sequence of the event in the log.
    seq: int


@dataclass(frozen=True, kw_only=True)
class Redacted:
    """An event whose text was removed."""

    # Blobs that it named. `refold blobs sweep` deletes them if nothing else names them.
    blobs: int
    # Dead letters of webhooks that had its text, and were deleted.
    dead_letters: int
    # Notices that had its text, and were deleted.
    notices: int
    # Sequence of the event in the log.
    seq: int
    # Its type.
    type: str
