"""Durable agent sessions over HTTP: start, stream, approve.

    import refold

    helper = refold.Refold("http://127.0.0.1:8080", token="…").agent("helper")
    run = helper.session("hello").ask("Weather in Bergen?", submission="order-7")
    for u in run.updates():
        print(u.delta, end="")
    answer = run.wait()

AsyncRefold has the same methods for asyncio. Errors are RefoldErrors: ProblemError with the
server's code, ConnectionFailed, and RunError of a run that did not complete.
"""

from .aio import AsyncAgent, AsyncRefold, AsyncRun, AsyncSession
from .api import Approval, Blob, Call, PackShown, Question, Redacted, RunState, Schedule, SessionRow, Taken, Update, UsageTotal
from .blocking import Agent, Refold, Run, Session
from .errors import ConnectionFailed, ProblemError, RefoldError, RunError

__all__ = [
    "Agent", "Approval", "AsyncAgent", "AsyncRefold", "AsyncRun", "AsyncSession", "Blob", "Call", "ConnectionFailed",
    "PackShown", "ProblemError", "Question", "Redacted", "Refold", "RefoldError", "Run", "RunError", "RunState", "Schedule", "Session", "SessionRow",
    "Taken", "Update", "UsageTotal",
]
