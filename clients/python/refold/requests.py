"""The requests of the HTTP API, which Refold and AsyncRefold send."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timezone
from email.message import Message
from functools import cache
from http.client import HTTPException
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from urllib.parse import quote, urlencode

from .api import Approval, Blob, Question, Redacted, RunAccepted, RunState, Schedule, SessionRow, Taken
from .errors import ConnectionFailed, ProblemError

T = TypeVar("T")

Input = str | Sequence[Mapping[str, str]]
"""The user's input: a text, or parts: {"text": …} and {"blob": …}."""

WhenBusy = Literal["queue", "steer", "interrupt", "reject"]
TranscriptFormat = Literal["json", "md", "openai", "anthropic"]

TRIES = 5
"""How often a request is sent, if it may be repeated and the server is not reached."""


@dataclass(frozen=True, kw_only=True)
class Request(Generic[T]):
    method: str
    path: str
    decode: Callable[[Any], T]
    query: Mapping[str, str | None] | None = None  # None: left out
    body: Any = None  # sent as JSON
    data: bytes | None = None  # sent as it is
    key: str | None = None  # it may be repeated, and takes effect once

    @property
    def repeatable(self) -> bool:
        return self.method == "GET" or self.key is not None

    @property
    def target(self) -> str:
        query = urlencode({name: value for name, value in (self.query or {}).items() if value is not None})
        return self.path + ("?" + query if query else "")

    def content(self) -> bytes | None:
        return self.data if self.body is None else json.dumps(self.body).encode()

    def headers(self, token: str | None) -> dict[str, str]:
        headers = {"User-Agent": "refold-python", "Accept": "*/*"}
        if token:
            headers["Authorization"] = "Bearer " + token
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        elif self.data is not None:
            headers["Content-Type"] = "application/octet-stream"
        return headers

    def answer(self, status: int, reason: str, headers: Message, content: bytes) -> T:
        """Returns what the answer says, or raises its problem."""
        media_type = headers.get("Content-Type", "")
        if status >= 300:
            after = headers.get("Retry-After", "")
            raise problem_of(status, reason, media_type, content, int(after) if after.isdecimal() else None)
        return self.decode(json.loads(content) if media_type.startswith("application/json") else content.decode())


def problem_of(status: int, reason: str, media_type: str, content: bytes, retry_after: int | None) -> ProblemError:
    if media_type.startswith("application/problem+json"):
        return problem(json.loads(content), retry_after)
    return ProblemError(status, f"http_{status}", f"{reason}: {content[:200].decode(errors='replace')}", retry_after)


def problem(body: Mapping[str, Any], retry_after: int | None = None) -> ProblemError:
    return ProblemError(body["status"], body["code"], body["detail"], retry_after)


def is_transient(error: Exception) -> bool:
    """Reports whether the same request may succeed later."""
    if isinstance(error, ProblemError):
        return error.status in (429, 502, 503, 504)
    return isinstance(error, (OSError, HTTPException, EOFError))


def failed(error: Exception) -> Exception:
    """Wraps what a connection raises."""
    if isinstance(error, (ProblemError, ConnectionFailed)) or not is_transient(error):
        return error
    wrapped = ConnectionFailed(f"the server can't be reached: {error or type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


WAIT_MAX = 60
"""How many seconds a server may ask to wait."""


def pause(failures: int, error: Exception) -> float:
    """Returns the seconds to wait before a request is repeated: more each time, or as many as the server asked for."""
    if failures == 0:
        return 0.0
    asked = error.retry_after or 0 if isinstance(error, ProblemError) else 0
    return max(min(5.0, 0.125 * 2**failures), min(asked, WAIT_MAX))


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name.removesuffix("_"): (field.name, hints[field.name]) for field in fields(kind)}


def decode(kind: Any, value: Any) -> Any:
    """Makes a type of refold.api of JSON. Fields that it does not have are left out."""
    if get_origin(kind) in (Union, UnionType):
        kind = next(of for of in get_args(kind) if of is not NoneType)
    if get_origin(kind) is list:
        return [decode(get_args(kind)[0], item) for item in value]
    if is_dataclass(kind) and isinstance(kind, type):
        hints = _hints(kind)
        known = {hints[name][0]: decode(hints[name][1], of) for name, of in value.items() if name in hints}
        return kind(**known)
    return value


def _of(kind: type[T]) -> Callable[[Any], T]:
    return lambda value: decode(kind, value)


def _raw(value: Any) -> Any:
    return value


def new_key() -> str:
    return secrets.token_hex(16)


def session_path(sid: str, rest: str = "") -> str:
    return f"/v1/sessions/{quote(sid, safe='')}{rest}"


def ask(sid: str, agent: str | None, input: Input, submission: str | None, when_busy: WhenBusy | None, config: Mapping[str, Any] | None) -> Request[RunAccepted]:
    body = {"agent": agent, "input": input, "when_busy": when_busy, "config": config}
    body = {name: value for name, value in body.items() if value is not None}
    return Request(method="POST", path=session_path(sid, "/runs"), decode=_of(RunAccepted), body=body, key=submission or new_key())


def steer(sid: str, input: Input, submission: str | None) -> Request[RunAccepted]:
    return Request(method="POST", path=session_path(sid, "/steer"), decode=_of(RunAccepted), body={"input": input}, key=submission or new_key())


def control(sid: str, name: str, reason: str = "", **more: Any) -> Request[Taken]:
    body = {name: value for name, value in ({"reason": reason} | more).items() if value not in ("", None)} or None
    return Request(method="POST", path=session_path(sid, "/" + name), decode=_of(Taken), body=body, key=new_key())


def delete(sid: str, name: str = "", reason: str = "") -> Request[Taken]:
    body = {"reason": reason} if reason else None
    return Request(method="DELETE", path=session_path(sid, name), decode=_of(Taken), body=body, key=new_key())


def redact(sid: str, seq: int) -> Request[Redacted]:
    return Request(method="DELETE", path=session_path(sid, f"/events/{seq}"), decode=_of(Redacted))


def put(sid: str, name: str, body: Mapping[str, Any]) -> Request[Taken]:
    return Request(method="PUT", path=session_path(sid, "/" + name), decode=_of(Taken), body=body)


def run_state(sid: str, run: int) -> Request[RunState]:
    return Request(method="GET", path=session_path(sid, f"/runs/{run}"), decode=_of(RunState))


def view(sid: str) -> Request[dict[str, Any]]:
    return Request(method="GET", path=session_path(sid), decode=_raw)


def transcript(sid: str, format: TranscriptFormat) -> Request[Any]:
    return Request(method="GET", path=session_path(sid, "/transcript"), decode=_raw, query={"format": format})


def approvals(sid: str | None) -> Request[list[Approval]]:
    return Request(method="GET", path="/v1/approvals", decode=lambda body: decode(list[Approval], body["approvals"]), query={"session": sid})


def decide(sid: str, approval: Approval, decision: str, arguments: str, reason: str) -> Request[Taken]:
    body = {"decision": decision, "args_hash": approval.args_hash}
    if arguments:
        body["arguments"] = arguments
    if reason:
        body["reason"] = reason
    if approval.pack:
        body["manifest"] = approval.pack.manifest
    path = session_path(sid, "/approvals/" + quote(approval.call, safe=""))
    return Request(method="POST", path=path, decode=_of(Taken), body=body, key=new_key())


def questions(sid: str | None) -> Request[list[Question]]:
    return Request(method="GET", path="/v1/questions", decode=lambda body: decode(list[Question], body["questions"]), query={"session": sid})


def reply(sid: str, question: Question, output: str, declined: str) -> Request[Taken]:
    body = {"args_hash": question.args_hash}
    if output:
        body["output"] = output
    if declined:
        body["declined"] = declined
    path = session_path(sid, "/questions/" + quote(question.call, safe=""))
    return Request(method="POST", path=path, decode=_of(Taken), body=body, key=new_key())


def schedules(sid: str) -> Request[list[Schedule]]:
    return Request(method="GET", path=session_path(sid, "/schedules"), decode=lambda body: decode(list[Schedule], body["schedules"]))


def schedule(sid: str, method: str, name: str, rest: str = "", body: Any = None) -> Request[Taken]:
    return Request(method=method, path=session_path(sid, "/schedules/" + quote(name, safe="") + rest), decode=_of(Taken), body=body)


def upload(sid: str, data: bytes, name: str | None) -> Request[Blob]:
    return Request(method="PUT", path=session_path(sid, "/blobs"), decode=_of(Blob), data=data, query={"name": name})


@dataclass(frozen=True)
class Page:
    sessions: list[SessionRow]
    next: str | None


def sessions(name: str | None, state: Sequence[str], waits_for: str | None, model: str | None, since: datetime | None, all: bool, after: str | None) -> Request[Page]:
    query = {
        "name": name, "state": ",".join(state) or None, "waits_for": waits_for, "model": model,
        "since": since.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") if since else None,
        "all": "true" if all else None, "after": after,
    }
    return Request(method="GET", path="/v1/sessions", query=query, decode=lambda body: Page(decode(list[SessionRow], body["sessions"]), body.get("next")))
