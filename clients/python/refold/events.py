"""Streams of updates, without their input and output."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from .api import Update
from .requests import TRIES, Request, decode, failed, is_transient, pause, problem, session_path

SILENCE = 30.0
"""Seconds: a stream that says nothing for so long is lost. Servers send a comment every 15."""


class Following:
    """Follows a session over any number of connections, so that each update comes once.

    Send request(), call connected() when it is answered, and feed() what is read. When the
    connection is lost, wait for as many seconds as lost() says, and begin again.
    """

    def __init__(self, sid: str, run: int | None, after: str | None) -> None:
        self.over = False
        self._sid, self._run, self._position = sid, run, after
        self._failures = 0
        self._reached = False
        self._forget()

    def _forget(self) -> None:
        self._rest, self._id, self._event, self._data = b"", None, "", []

    def request(self) -> Request[None]:
        query = {"run": None if self._run is None else str(self._run), "after": self._position}
        return Request(method="GET", path=session_path(self._sid, "/updates"), query=query, decode=lambda _: None)

    def connected(self) -> None:
        self._reached = True

    def lost(self, error: Exception) -> float:
        """Returns the seconds to wait. Raises the error if it makes no sense to go on."""
        self._forget()  # what is cut off comes again
        self._failures += 1
        if not is_transient(error) or not self._reached and self._failures >= TRIES:
            raise failed(error)
        return pause(self._failures - 1, error)

    def feed(self, data: bytes) -> Iterator[Update]:
        """Yields the updates that are complete; over is set at the end of the run."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for raw in lines:
            field, _, value = raw.rstrip(b"\r").decode().partition(":")
            value = value.removeprefix(" ")
            if not raw.rstrip(b"\r"):
                update = self._dispatch()
                if update:
                    self._failures = 0
                    self.over = self._run is not None and update.type == "run_ended"
                    yield update
            elif field == "id":
                self._id = value
            elif field == "event":
                self._event = value
            elif field == "data":
                self._data.append(value)

    def _dispatch(self) -> Update | None:
        event, data = self._event, "\n".join(self._data)
        if self._id is not None:
            self._position = self._id
        self._id, self._event, self._data = None, "", []
        if event == "problem":
            raise problem(json.loads(data))
        if event or not data:
            return None
        update: Update = decode(Update, json.loads(data) | {"position": self._position or ""})
        return update


def left(until: float | None) -> float:
    """Returns the seconds that a stream may be silent. Raises TimeoutError if none are left."""
    if until is None:
        return SILENCE
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("the timeout is over; what runs goes on")
    return min(SILENCE, seconds)
