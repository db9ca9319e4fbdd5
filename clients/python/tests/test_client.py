"""The client against a server that says what a test says."""

import asyncio
import inspect
import json
import re
import threading
import unittest
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

import generate
import refold
from refold.requests import TRIES, pause as PAUSE

NOW = [mock.patch(name, lambda failures, error: 0.0) for name in ("refold.requests.pause", "refold.events.pause")]


@contextmanager
def serving(*answers):
    """Serves these answers, and the last one for ever: functions of a request's handler.

    Yields a URL, and the requests that came."""
    came, left = [], list(answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            came.append(self)
            self.close_connection = True
            (left.pop(0) if len(left) > 1 else left[0])(self)

        do_GET = do_POST = do_PUT = do_DELETE = handle_any

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/base", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(status, body, media_type="application/json", headers={}):
    def send(handler):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", media_type)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)
    return send


def problem(status, code, headers={}):
    body = {"type": "about:blank", "title": "No", "status": status, "code": code, "detail": "do better"}
    return answer(status, body, "application/problem+json", headers)


def stream(*parts, ends=True):
    """A stream of these parts, each a chunk. It is cut off unless it ends."""
    def send(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for part in parts:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if ends:
            handler.wfile.write(b"0\r\n\r\n")
    return send


def event(position, **update):
    return f"id: {position}\ndata: {json.dumps(update, ensure_ascii=False)}\n\n".encode()


def done(value):
    """Returns what a call returns, with or without asyncio."""
    async def gather():
        return [item async for item in value]
    if inspect.isasyncgen(value):
        return asyncio.run(gather())
    if inspect.isawaitable(value):
        return asyncio.run(value)
    return list(value) if inspect.isgenerator(value) else value


class ClientTest(unittest.TestCase):
    def setUp(self):
        for patch in NOW:
            patch.start()
            self.addCleanup(patch.stop)

    def each(self, *answers):
        """Yields each kind of client, with a server of its own."""
        for kind in (refold.Refold, refold.AsyncRefold):
            with self.subTest(kind=kind.__name__), serving(*answers) as (url, came):
                yield kind(url, "secret"), came

    def test_generated_files_are_current(self):
        for name, wanted in generate.written.items():
            self.assertEqual((generate.HERE / name).read_text("utf-8"), wanted, f"{name}: run python3 generate.py")

    def test_stream_goes_on_after_a_lost_connection(self):
        started, text = event("1-1", type="run_started", run=1), event("1-1-2-ab", type="text", run=1, turn=1, delta="å😀")
        ended = event("2-1", type="run_ended", run=1, lifecycle="completed")
        whole = started + text
        cuts = [
            stream(b": open\n\n", started[:10], ends=False), stream(whole[:-3], ends=False), stream(),
            stream(*(text[i:i + 1] for i in range(len(text)))), problem(503, "unavailable"), stream(b": alive\n\n", ended),
        ]
        for client, came in self.each(*cuts):
            updates = done(client.session("s").run(1).updates())
            self.assertEqual([(u.type, u.position) for u in updates], [("run_started", "1-1"), ("text", "1-1-2-ab"), ("run_ended", "2-1")])
            self.assertEqual(updates[1].delta, "å😀")
            after = ["", "", "&after=1-1", "&after=1-1", "&after=1-1-2-ab", "&after=1-1-2-ab"]
            self.assertEqual([r.path for r in came], ["/base/v1/sessions/s/updates?run=1" + a for a in after])

    def test_stream_ends_with_204(self):
        for client, came in self.each(stream(event("1-1", type="run_started", run=1)), answer(204, b"")):
            self.assertEqual(len(done(client.session("s").run(1).updates())), 1)

    def test_position_without_an_update(self):
        for client, came in self.each(stream(b"id: 7-0\n\n"), problem(401, "unauthorized")):
            with self.assertRaises(refold.ProblemError):
                done(client.session("s").updates())
            self.assertEqual(came[1].path, "/base/v1/sessions/s/updates?after=7-0")

    def test_problem_ends_a_stream(self):
        body = b'event: problem\ndata: {"status": 401, "code": "unauthorized", "detail": "the token is not valid any more"}\n\n'
        for client, came in self.each(stream(body)):
            with self.assertRaises(refold.ProblemError) as caught:
                done(client.session("s").updates())
            self.assertEqual((caught.exception.code, len(came)), ("unauthorized", 1))

    def test_repeats_with_one_key(self):
        accepted = answer(202, {"seq": 3, "run": 1, "position": "3-0", "new": "of a later release"})
        for client, came in self.each(problem(503, "unavailable"), lambda handler: None, problem(429, "too_many_requests"), accepted):
            self.assertEqual(done(client.agent("helper").session("s").ask("hi")).number, 1)
            self.assertEqual(len({r.headers["Idempotency-Key"] for r in came}), 1)
            self.assertEqual(len(came), 4)
            self.assertEqual(json.loads(came[3].body), {"agent": "helper", "input": "hi"})
            self.assertEqual(came[3].headers["Authorization"], "Bearer secret")

    def test_gives_up(self):
        for client, came in self.each(problem(503, "unavailable")):
            with self.assertRaises(refold.ProblemError):
                done(client.session("s").ask("hi", submission="mine"))
            self.assertEqual([r.headers["Idempotency-Key"] for r in came], ["mine"] * TRIES)
        for client, came in self.each(lambda handler: None):
            with self.assertRaises(refold.ConnectionFailed):
                done(client.session("s").updates())
            self.assertEqual(len(came), TRIES)

    def test_what_has_no_key_is_sent_once(self):
        for client, came in self.each(problem(503, "unavailable")):
            with self.assertRaises(refold.ProblemError):
                done(client.session("s").set_facts({"plan": "gold"}))
            self.assertEqual(len(came), 1)

    def test_problems(self):
        for client, came in self.each(problem(409, "run_active"), answer(502, b"<h1>Bad</h1>", "text/html")):
            with self.assertRaises(refold.ProblemError) as caught:
                done(client.session("s").pause())
            self.assertEqual((caught.exception.status, caught.exception.code, caught.exception.detail), (409, "run_active", "do better"))
            with self.assertRaises(refold.ProblemError) as caught:
                done(client.session("s").pause())
            self.assertEqual(caught.exception.code, "http_502")

    def test_run_that_fails(self):
        state = {"run": 1, "lifecycle": "failed", "ended": True, "code": "no_luck", "detail": "it was bad", "calls": [{"call": "c", "tool": "t"}]}
        for client, came in self.each(answer(200, state)):
            with self.assertRaises(refold.RunError) as caught:
                done(client.session("s").run(1).wait())
            self.assertEqual(str(caught.exception), "run 1 failed (no_luck): it was bad")
            self.assertEqual(caught.exception.answer.calls, [refold.Call(call="c", tool="t")])

    def test_timeout_of_a_stream(self):
        # Whatever time is left, the stream is over before the server says anything.
        release = threading.Event()
        for client, came in self.each(lambda handler: release.wait(60)):
            release.clear()
            with self.assertRaises(TimeoutError):
                done(client.session("s").run(1).updates(timeout=0.05))
            with self.assertRaises(TimeoutError):
                done(client.session("s").updates(timeout=0))
            release.set()

    def test_pause(self):
        unavailable = refold.ProblemError(503, "unavailable", "do better", 2)
        self.assertEqual([PAUSE(n, EOFError()) for n in (0, 1, 2, 9)], [0, 0.25, 0.5, 5])
        self.assertEqual([PAUSE(1, unavailable), PAUSE(9, unavailable)], [2, 5])
        for client, came in self.each(problem(503, "unavailable", {"Retry-After": "7"})):
            with self.assertRaises(refold.ProblemError) as caught:
                done(client.session("s").set_facts({"plan": "gold"}))
            self.assertEqual(caught.exception.retry_after, 7)

    def test_pages(self):
        row = {"session": "a", "state": "running"}
        for client, came in self.each(answer(200, {"sessions": [row], "next": "n+1"}), answer(200, {"sessions": [row | {"session": "b"}]})):
            self.assertEqual([r.session for r in done(client.sessions(name="x", state=["running", "paused"]))], ["a", "b"])
            self.assertEqual(came[1].path, "/base/v1/sessions?name=x&state=running%2Cpaused&after=n%2B1")

    def test_each_operation_has_a_method(self):
        document = json.loads((generate.HERE / "../../web/openapi.json").read_text("utf-8"))
        operations = {(method.upper(), path) for path, of in document["paths"].items() for method in of
                      if path.startswith("/v1/") and "inspector" not in of[method].get("tags", [])}  # those are for its pages
        operations -= {o for o in operations if re.match(r"/v1/(ai-sdk|ag-ui|replies)/", o[1])}  # for the libraries of others, and for those who have a link alone
        approval = refold.Approval(session="s", run=1, call="c", tool_id="t", tool="t", arguments="{}", args_hash="h")
        question = refold.Question(session="s", run=1, call="c", tool_id="t", tool="t", arguments="{}", args_hash="h", by="approvers")
        everything = {
            "seq": 1, "run": 1, "position": "p", "lifecycle": "completed", "ended": True, "sessions": [], "approvals": [], "questions": [], "schedules": [],
            "blob": "b", "media_type": "m", "size": 1, "expires": 1, "type": "t", "notices": 0, "dead_letters": 0, "blobs": 0,
        }
        for client, came in self.each(answer(200, everything)):
            s = client.agent("helper").session("s")
            for call in [
                lambda: client.sessions(), lambda: client.approvals(), lambda: s.ask([{"text": "hi"}]), lambda: s.steer("hi"),
                lambda: s.pause(), lambda: s.resume(), lambda: s.interrupt(), lambda: s.cancel(), lambda: s.end(), lambda: s.view(),
                lambda: s.transcript(), lambda: s.approve(approval), lambda: s.deny(approval),
                lambda: client.questions(), lambda: s.questions(), lambda: s.reply(question, "a"), lambda: s.decline(question, "no"), lambda: s.set_facts({"a": None}),
                lambda: s.set_agent("helper"), lambda: s.set_overrides("session", disable=[]), lambda: s.upload(b"file", name="a b"),
                lambda: s.run(1).wait(), lambda: s.run(1).cancel(), lambda: s.run(1).edit("hi"), lambda: s.complete(), lambda: s.fail("code"),
                lambda: s.set_profile("p"), lambda: s.set_config({}), lambda: s.set_registry({"tools": []}), lambda: s.updates(timeout=0),
                lambda: s.schedules(), lambda: s.set_schedule("n", cron="@daily", input="hi", zone="UTC"), lambda: s.remove_schedule("n"),
                lambda: s.pause_schedule("n"), lambda: s.resume_schedule("n"),
                lambda: s.delete("why"), lambda: s.redact(7), lambda: s.hold(), lambda: s.end_hold(),
            ]:
                try:
                    done(call())
                except TimeoutError:
                    came.append(mock.Mock(command="GET", path="/base/v1/sessions/s/updates"))
            called = set()
            for r in came:
                path = r.path.removeprefix("/base").partition("?")[0]
                called |= {(m, p) for m, p in operations if m == r.command and re.fullmatch(re.sub(r"\{[a-z]+\}", "[^/]+", p), path)}
            self.assertEqual(operations - called, set())


if __name__ == "__main__":
    unittest.main()
