"""The client for programs with asyncio.

blocking.py is made of this file by generate.py: it is the same without async and await.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from . import requests
from .aconnections import AsyncConnections
from .api import Approval, Blob, Question, Redacted, RunAccepted, RunState, Schedule, SessionRow, Taken, Update
from .connections import Token
from .errors import RunError
from .requests import Input, Request, TranscriptFormat, WhenBusy


class AsyncRefold:
    """A server. Each request has its own connection.

    url: such as https://example.com, with the path under which the server is mounted.
    token: or a function that returns one; it is called before each request.
    timeout: of a request, in seconds. Streams have their own.
    """

    def __init__(self, url: str, token: Token = None, *, timeout: float = 60.0, tls: ssl.SSLContext | None = None) -> None:
        self._http = AsyncConnections(url, token, timeout, tls)

    def agent(self, name: str) -> AsyncAgent:
        """An agent of the server."""
        return AsyncAgent(self._http, name)

    def session(self, id: str) -> AsyncSession:
        """A session of any agent: its requests are for the agent that it has."""
        return AsyncSession(self._http, id, None)

    async def sessions(self, *, name: str | None = None, state: Sequence[str] = (), waits_for: str | None = None, model: str | None = None, since: datetime | None = None, all: bool = False) -> AsyncIterator[SessionRow]:
        """Lists sessions, the one with the latest activity first; all: also those that did nothing for a week."""
        after = None
        while True:
            page = await self._http.send(requests.sessions(name, state, waits_for, model, since, all, after))
            for row in page.sessions:
                yield row
            if (after := page.next) is None:
                return

    async def questions(self) -> list[Question]:
        """The calls of all sessions that wait for a reply."""
        return await self._http.send(requests.questions(None))

    async def approvals(self) -> list[Approval]:
        """The calls of all sessions that wait for a person."""
        return await self._http.send(requests.approvals(None))


class AsyncAgent:
    """An agent has a model, a system text and tools."""

    def __init__(self, http: AsyncConnections, name: str) -> None:
        self.name = name
        self._http = http

    def session(self, id: str) -> AsyncSession:
        """A session with the agent. It begins with its first run."""
        return AsyncSession(self._http, id, self.name)


class AsyncSession:
    """A conversation with an agent."""

    def __init__(self, http: AsyncConnections, id: str, agent: str | None) -> None:
        self.id = id
        self._http, self._agent = http, agent

    async def ask(self, input: Input, *, submission: str | None = None, when_busy: WhenBusy | None = None, config: Mapping[str, Any] | None = None) -> AsyncRun:
        """Requests a run. When it returns, nothing can lose the request.

        submission: the same one with the same input is one run, however often it is sent.
        when_busy: what to do while another run is active; queue if absent.
        config: the run's own in place of the agent's; needs the right operate.
        """
        return await self._run(requests.ask(self.id, self._agent, input, submission, when_busy, config))

    async def steer(self, input: Input, *, submission: str | None = None) -> AsyncRun:
        """Gives the active run more input before its next turn. Without one it starts a run."""
        return await self._run(requests.steer(self.id, input, submission))

    def run(self, number: int) -> AsyncRun:
        """A handle on an earlier run. It sends nothing."""
        return AsyncRun(self, number)

    async def pause(self, reason: str = "") -> Taken:
        """Keeps the active run from beginning turns and calls."""
        return await self._http.send(requests.control(self.id, "pause", reason))

    async def resume(self, reason: str = "", *, budget: Mapping[str, Any] | None = None) -> Taken:
        """Lets the paused run go on. budget replaces the run's own, and needs the right operate."""
        return await self._http.send(requests.control(self.id, "resume", reason, budget=budget))

    async def interrupt(self, reason: str = "") -> Taken:
        """Ends the active run when its open work is settled."""
        return await self._http.send(requests.control(self.id, "interrupt", reason))

    async def cancel(self, reason: str = "") -> Taken:
        """Ends the active run at once."""
        return await self._http.send(requests.control(self.id, "cancel", reason))

    async def complete(self, reason: str = "") -> Taken:
        """Ends the run that waits for input as completed: its output is the model's last answer."""
        return await self._http.send(requests.control(self.id, "complete", reason))

    async def fail(self, code: str = "", reason: str = "") -> Taken:
        """Ends the run that waits for input as failed, with a code for programs."""
        return await self._http.send(requests.control(self.id, "fail", reason, code=code))

    async def end(self) -> Taken:
        """Ends the session for good. Needs the right operate."""
        return await self._http.send(requests.control(self.id, "end"))

    async def delete(self, reason: str = "") -> Taken:
        """Erases the session for good, also one that has ended. Needs the right erase.

        Its messages stay stored until the server's eraser deletes them.
        """
        return await self._http.send(requests.delete(self.id, reason=reason))

    async def redact(self, seq: int) -> Redacted:
        """Removes the text of an event for good: the session stays what it is. Needs the right erase.

        It takes some seconds. The problem text_in_use says that the session uses it still.
        """
        return await self._http.send(requests.redact(self.id, seq))

    async def hold(self, reason: str = "") -> Taken:
        """Holds the session: nobody can delete it until end_hold. Needs the right operate."""
        return await self._http.send(requests.control(self.id, "hold", reason))

    async def end_hold(self, reason: str = "") -> Taken:
        """Ends the hold of the session. Needs the right operate."""
        return await self._http.send(requests.delete(self.id, "/hold", reason))

    def updates(self, *, after: str | None = None, timeout: float | None = None) -> AsyncIterator[Update]:
        """What happens in the session from now on, or after a position; start is its beginning.

        It goes on after a lost connection, each update once. TimeoutError after timeout seconds.
        """
        return self._http.follow(self.id, None, after, timeout)

    async def view(self) -> dict[str, Any]:
        """What the session looks like now: the schema View of /openapi.json."""
        return await self._http.send(requests.view(self.id))

    async def transcript(self, format: TranscriptFormat = "json") -> Any:
        """The conversation: md as a text, all others as JSON."""
        return await self._http.send(requests.transcript(self.id, format))

    async def approvals(self) -> list[Approval]:
        """The calls that wait for a person."""
        return await self._http.send(requests.approvals(self.id))

    async def approve(self, approval: Approval, *, arguments: str = "", reason: str = "") -> Taken:
        """Approves a call with the arguments that the approval has, or with others (JSON)."""
        return await self._http.send(requests.decide(self.id, approval, "approve", arguments, reason))

    async def deny(self, approval: Approval, *, reason: str = "") -> Taken:
        """Denies a call. The model is shown the reason."""
        return await self._http.send(requests.decide(self.id, approval, "deny", "", reason))

    async def questions(self) -> list[Question]:
        """The calls that wait for a reply."""
        return await self._http.send(requests.questions(self.id))

    async def reply(self, question: Question, output: str) -> Taken:
        """Answers a question: with JSON, if it has a schema."""
        return await self._http.send(requests.reply(self.id, question, output, ""))

    async def decline(self, question: Question, reason: str) -> Taken:
        """Says that nobody answers a question. The model is shown the reason."""
        return await self._http.send(requests.reply(self.id, question, "", reason))

    async def set_facts(self, facts: Mapping[str, str | None]) -> Taken:
        """Sets facts, and removes those that are None. Needs the right operate."""
        return await self._http.send(requests.put(self.id, "facts", {"facts": dict(facts)}))

    async def set_agent(self, agent: str) -> Taken:
        """Gives the session another agent. Needs the right operate."""
        return await self._http.send(requests.put(self.id, "agent", {"agent": agent}))

    async def set_overrides(self, scope: str, **lists: Sequence[str]) -> Taken:
        """Changes the lists disable, enable and force of tools, of the session or the run. Needs the right operate."""
        return await self._http.send(requests.put(self.id, "overrides", {"scope": scope} | lists))

    async def set_profile(self, profile: str) -> Taken:
        """Selects the profile of runs whose config names none. Needs the right operate."""
        return await self._http.send(requests.put(self.id, "profile", {"profile": profile}))

    async def set_config(self, config: Mapping[str, Any]) -> Taken:
        """Sets the session's own config, for runs that bring none. Needs the right operate."""
        return await self._http.send(requests.put(self.id, "config", {"config": dict(config)}))

    async def set_registry(self, registry: Mapping[str, Any]) -> Taken:
        """Replaces the session's registry of tools. Needs the right operate."""
        return await self._http.send(requests.put(self.id, "registry", {"registry": dict(registry)}))

    async def schedules(self) -> list[Schedule]:
        """The session's schedules, and when each fires next."""
        return await self._http.send(requests.schedules(self.id))

    async def set_schedule(self, name: str, *, cron: str, input: Any, **more: Any) -> Taken:
        """Has the session request a run at each time of a cron expression. more: zone, config, when_busy, catch_up, rev. Needs the right operate."""
        return await self._http.send(requests.schedule(self.id, "PUT", name, body={"cron": cron, "input": input} | more))

    async def remove_schedule(self, name: str) -> Taken:
        """Removes a schedule: its runs go on. Needs the right operate."""
        return await self._http.send(requests.schedule(self.id, "DELETE", name))

    async def pause_schedule(self, name: str) -> Taken:
        """Pauses a schedule. Needs the right operate."""
        return await self._http.send(requests.schedule(self.id, "POST", name, "/pause"))

    async def resume_schedule(self, name: str) -> Taken:
        """Lets a paused schedule go on. Needs the right operate."""
        return await self._http.send(requests.schedule(self.id, "POST", name, "/resume"))

    async def upload(self, data: bytes, *, name: str | None = None) -> Blob:
        """Stores a file for the parts of this session's requests: {"blob": file.blob}."""
        return await self._http.send(requests.upload(self.id, data, name))

    async def _run(self, request: Request[RunAccepted]) -> AsyncRun:
        return AsyncRun(self, (await self._http.send(request)).run)


class AsyncRun:
    """One request in a session. number counts from 1."""

    def __init__(self, session: AsyncSession, number: int) -> None:
        self.session, self.number = session, number

    def updates(self, *, after: str | None = None, timeout: float | None = None) -> AsyncIterator[Update]:
        """What happens in the run, from its beginning to its end. Leaving the loop stops nothing."""
        return self.session._http.follow(self.session.id, self.number, after, timeout)

    async def state(self) -> RunState:
        """The run as it is now, and its answer if it has ended."""
        return await self.session._http.send(requests.run_state(self.session.id, self.number))

    async def wait(self, *, timeout: float | None = None) -> RunState:
        """Waits for the end of the run. Raises RunError at any other end than completed."""
        until = None if timeout is None else time.monotonic() + timeout
        while not (state := await self.state()).ended:
            async for _ in self.updates(timeout=None if until is None else until - time.monotonic()):
                pass
        if state.lifecycle != "completed":
            raise RunError(state)
        return state

    async def cancel(self, reason: str = "") -> Taken:
        """Ends the run at once, the active one or a queued one."""
        return await self.session._http.send(requests.control(self.session.id, f"runs/{self.number}/cancel", reason))

    async def edit(self, text: str) -> Taken:
        """Gives the queued run another input."""
        return await self.session._http.send(requests.put(self.session.id, f"runs/{self.number}/input", {"input": text}))
