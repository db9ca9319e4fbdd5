"""The errors of this package."""

from __future__ import annotations

from .api import RunState


class RefoldError(Exception):
    """What all errors of this package are."""


class ProblemError(RefoldError):
    """The server refused a request.

    code tells programs why; it is http_502, say, if what answered was no server of Refold.
    detail tells people what to do. retry_after is after how many seconds the same request may
    succeed, if the server knows.
    """

    def __init__(self, status: int, code: str, detail: str, retry_after: int | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after = retry_after


class ConnectionFailed(RefoldError, ConnectionError):
    """The server can't be reached, or its answer was cut off. __cause__ has the reason."""


class RunError(RefoldError):
    """A run ended failed, cancelled or interrupted. answer has what there is of an answer."""

    def __init__(self, answer: RunState) -> None:
        code = f" ({answer.code})" if answer.code else ""
        detail = f": {answer.detail}" if answer.detail else ""
        super().__init__(f"run {answer.run} {answer.lifecycle}{code}{detail}")
        self.lifecycle = answer.lifecycle
        self.code = answer.code
        self.detail = answer.detail
        self.answer = answer
