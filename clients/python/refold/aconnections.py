"""Sends requests with asyncio."""

from __future__ import annotations

import asyncio
import io
import ssl
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from http.client import HTTPException, HTTPMessage, parse_headers
from typing import Any, TypeVar
from urllib.parse import urlsplit

from . import requests
from .api import Update
from .connections import Token
from .events import Following, left
from .requests import Request

T = TypeVar("T")


class AsyncConnections:
    """Sends each request over a connection of its own."""

    def __init__(self, url: str, token: Token, timeout: float, tls: ssl.SSLContext | None) -> None:
        self._url, self._token, self._timeout, self._tls = urlsplit(url.rstrip("/")), token, timeout, tls

    async def send(self, request: Request[T]) -> T:
        tried = 1
        while True:
            try:
                async with asyncio.timeout(self._timeout), self._open(request) as response:
                    return request.answer(response.status, response.reason, response.headers, await response.read())
            except Exception as error:
                if not request.repeatable or tried == requests.TRIES or not requests.is_transient(error):
                    raise requests.failed(error)
                await asyncio.sleep(requests.pause(tried, error))
            tried += 1

    @asynccontextmanager
    async def _open(self, request: Request[Any]) -> AsyncIterator[_Response]:
        https = self._url.scheme == "https"
        tls = (self._tls or ssl.create_default_context()) if https else None
        reader, writer = await asyncio.open_connection(self._url.hostname, self._url.port or (443 if https else 80), ssl=tls)
        try:
            token = self._token() if callable(self._token) else self._token
            content = request.content() or b""
            headers = {"Host": self._url.netloc.rpartition("@")[2], "Connection": "close"} | request.headers(token)
            if request.method != "GET":
                headers["Content-Length"] = str(len(content))
            head = [f"{request.method} {self._url.path}{request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
            if any("\r" in line or "\n" in line for line in head):
                raise ValueError("a header has a line break")
            writer.write("\r\n".join([*head, "", ""]).encode() + content)
            await writer.drain()
            yield await _Response.begin(reader)
        finally:
            writer.close()

    async def follow(self, sid: str, run: int | None, after: str | None, timeout: float | None) -> AsyncIterator[Update]:
        following = Following(sid, run, after)
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            error: Exception = EOFError("the stream ended")
            try:
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(left(until)):
                        response = await stack.enter_async_context(self._open(following.request()))
                        if response.status >= 300:
                            following.request().answer(response.status, response.reason, response.headers, await response.read())
                    following.connected()
                    chunks = response.data()
                    while data := await _within(left(until), anext(chunks, b"")):
                        for update in following.feed(data):
                            yield update
                            if following.over:
                                return
                    if response.status == 204:
                        return
            except Exception as lost:
                error = lost
            left(until)
            await asyncio.sleep(following.lost(error))


async def _within(seconds: float, reading: Awaitable[bytes]) -> bytes:
    async with asyncio.timeout(seconds):
        return await reading


class _Response:
    """An answer whose head was read."""

    def __init__(self, reader: asyncio.StreamReader, status: int, reason: str, headers: HTTPMessage) -> None:
        self.status, self.reason = status, reason
        self.headers = headers
        self._reader = reader

    @classmethod
    async def begin(cls, reader: asyncio.StreamReader) -> _Response:
        try:
            head = io.BytesIO(await reader.readuntil(b"\r\n\r\n"))
            _, status, *reason = head.readline().decode("latin-1").split(None, 2)
            return cls(reader, int(status), "".join(reason).strip(), parse_headers(head))
        except (ValueError, asyncio.LimitOverrunError) as error:
            raise HTTPException("the answer is no HTTP") from error

    async def read(self) -> bytes:
        return b"".join([data async for data in self.data()])

    async def data(self) -> AsyncIterator[bytes]:
        """Yields the body as it comes. Raises IncompleteReadError if it is cut off."""
        if self.status == 204:
            return
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int((await self._reader.readuntil(b"\r\n")).partition(b";")[0], 16):
                yield await self._reader.readexactly(size)
                await self._reader.readexactly(2)
        elif (length := self.headers.get("Content-Length")) is not None:
            yield await self._reader.readexactly(int(length))
        else:
            while data := await self._reader.read(1 << 16):
                yield data
