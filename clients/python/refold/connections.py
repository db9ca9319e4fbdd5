"""Sends requests without asyncio."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

from . import requests
from .api import Update
from .events import Following, left
from .requests import Request

T = TypeVar("T")

Token = str | Callable[[], str] | None


class Connections:
    """Sends each request over a connection of its own, so threads may share it."""

    def __init__(self, url: str, token: Token, timeout: float, tls: ssl.SSLContext | None) -> None:
        self._url, self._token, self._timeout, self._tls = urlsplit(url.rstrip("/")), token, timeout, tls

    def send(self, request: Request[T]) -> T:
        tried = 1
        while True:
            try:
                with self._open(request, self._timeout) as (_, response):
                    return request.answer(response.status, response.reason, response.headers, response.read())
            except Exception as error:
                if not request.repeatable or tried == requests.TRIES or not requests.is_transient(error):
                    raise requests.failed(error)
                time.sleep(requests.pause(tried, error))
            tried += 1

    @contextmanager
    def _open(self, request: Request[Any], timeout: float) -> Iterator[tuple[socket.socket, http.client.HTTPResponse]]:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)
        else:
            connection = http.client.HTTPConnection(host, port, timeout=timeout)
        try:
            connection.connect()
            sock = connection.sock
            token = self._token() if callable(self._token) else self._token
            headers = request.headers(token) | {"Connection": "close"}
            connection.request(request.method, self._url.path + request.target, request.content(), headers)
            with connection.getresponse() as response:
                yield sock, response
        finally:
            connection.close()

    def follow(self, sid: str, run: int | None, after: str | None, timeout: float | None) -> Iterator[Update]:
        following = Following(sid, run, after)
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            error: Exception = EOFError("the stream ended")
            try:
                with self._open(following.request(), left(until)) as (sock, response):
                    if response.status >= 300:
                        following.request().answer(response.status, response.reason, response.headers, response.read())
                    following.connected()
                    if response.status == 204:
                        return
                    while data := response.read1(1 << 16):
                        for update in following.feed(data):
                            yield update
                            if following.over:
                                return
                        sock.settimeout(left(until))
            except Exception as lost:
                error = lost
            left(until)
            time.sleep(following.lost(error))
