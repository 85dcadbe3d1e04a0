"""Connection of a participant: dialing a gateway (MCPx v0.1, section 6.2), reading and writing frames, over anyio."""

from __future__ import annotations

import random
import ssl
from collections import deque
from dataclasses import dataclass
from urllib.parse import SplitResult, quote, urlsplit

import anyio
from anyio.abc import ByteStream
from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import SEND_EOF
from websockets.uri import parse_uri

from ._protocol import Cursor
from .errors import (
    BadStatus,
    BadUrl,
    Busy,
    ConnectError,
    ConnectionBroken,
    Forbidden,
    Replaced,
    Unauthenticated,
    Unreachable,
)

FRAME_BYTES_MAX = 16 << 20
"""The longest message that is read, in bytes. A welcome may contain earlier envelopes."""
SEND_QUEUE_MAX = 1024
"""Envelopes that may wait to be written."""
SILENCE_S = 45.0
"""Silence after which a ping is sent, in seconds. After the same time again the connection counts as broken."""
CLOSE_TIMEOUT_S = 1.0
_READ_BYTES = 65_536
_MESSAGE_CHARS = 300
_REPLACED = 4001
_FIRST_WAIT_S = 0.25
_LONGEST_WAIT_S = 30.0


@dataclass(frozen=True)
class Address:
    """The gateway, the topic, and what to receive."""

    url: str
    token: str | None
    topic: str
    mode: str
    echo: bool
    tls: ssl.SSLContext | None
    connect_timeout_s: float
    places: bool = False

    def websocket(self, since: Cursor | None) -> str:
        """The URL of the WebSocket, for the history since this place."""
        query = f"topic={quote(self.topic, safe='-._')}&mode={quote(self.mode, safe='')}&echo={str(self.echo).lower()}"
        if self.places:
            query += "&places=true"
        if since is not None:
            query += f"&epoch={since.epoch}&offset={since.offset}"
        base = self._base()
        return f"{base.scheme}://{base.netloc}{base.path}/ws?{query}"

    def api(self) -> SplitResult:
        """The URL under which the REST API is; its scheme is that of the WebSocket."""
        base = self._base()
        return base._replace(path=f"{base.path}/api/v1")

    def _base(self) -> SplitResult:
        """The URL of the gateway, with the scheme of a WebSocket."""
        try:
            parts = urlsplit(self.url)
            host = parts.hostname
            _ = parts.port
        except ValueError:
            raise BadUrl("the gateway's URL cannot be used: it cannot be read") from None
        scheme = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}.get(parts.scheme)
        if scheme is None:
            raise _bad("it must begin with http://, https://, ws:// or wss://")
        if not host:
            raise _bad("it has no host")
        if "@" in parts.netloc:
            raise _bad("it has a user name; set the token instead")
        if parts.query:
            raise _bad("it has a query; set topic and mode instead")
        path = parts.path.rstrip("/")
        for end in ("/ws", "/mcp"):
            if path.endswith(end):
                path = path[: -len(end)]
                break
        return SplitResult(scheme, parts.netloc, path, "", "")


def _bad(why: str) -> BadUrl:
    return BadUrl(f"the gateway's URL cannot be used: {why}")


def _why(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, anyio.BrokenResourceError) and error.__cause__ else error
    return str(cause) or "it was closed"


def _broken(error: Exception) -> ConnectionBroken:
    return ConnectionBroken(f"the connection broke: {_why(error)}")


class Connection:
    """An open WebSocket."""

    def __init__(self, stream: ByteStream, protocol: ClientProtocol) -> None:
        self._stream = stream
        self._protocol = protocol
        self._queue: deque[str] = deque()
        self._wake = anyio.Event()
        self._closing = False
        self._write_lock = anyio.Lock()
        self._parts: list[bytes] = []
        self._texts: deque[str] = deque()
        self._ended = False
        # The first messages may have come with the answer to the handshake.
        self._take_all()

    def send(self, envelope: str) -> None:
        """Queues an envelope to be written."""
        if len(self._queue) >= SEND_QUEUE_MAX:
            raise Busy("too many envelopes wait to be sent")
        self._queue.append(envelope)
        self._wake.set()

    def close(self) -> None:
        """Closes the connection behind the envelopes that wait."""
        self._closing = True
        self._wake.set()

    async def write(self) -> None:
        """Writes what is queued, until it breaks or is closed."""
        try:
            while True:
                while self._queue:
                    self._protocol.send_text(self._queue.popleft().encode())
                await self._flush()
                if self._closing:
                    self._protocol.send_close(1000)
                    await self._flush()
                    return
                if not self._queue:
                    self._wake = anyio.Event()
                    if not self._queue and not self._closing:
                        await self._wake.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError, WebSocketException) as error:
            raise _broken(error) from None

    async def read(self) -> str:
        """The next text."""
        is_silent = False
        while True:
            if self._texts:
                return self._texts.popleft()
            if self._ended:
                raise self._end()
            try:
                with anyio.fail_after(SILENCE_S):
                    await self._receive()
            except TimeoutError:
                if is_silent:
                    raise ConnectionBroken("the connection broke: the gateway is silent") from None
                is_silent = True
                self._protocol.send_ping(b"")
                await self._flush()
            else:
                is_silent = False

    async def _receive(self) -> None:
        try:
            self._protocol.receive_data(await self._stream.receive(_READ_BYTES))
            # Pongs and the answer to a close.
            await self._flush()
        except anyio.EndOfStream:
            self._protocol.receive_eof()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise _broken(error) from None
        self._take_all()

    def _take_all(self) -> None:
        for event in self._protocol.events_received():
            if isinstance(event, Frame):
                self._take(event)
        if self._protocol.parser_exc is not None or self._protocol.state.name == "CLOSED":
            self._ended = True

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.CONT, Opcode.BINARY):
            self._parts.append(bytes(frame.data))
            if frame.fin:
                message, self._parts = b"".join(self._parts), []
                try:
                    self._texts.append(message.decode())
                except UnicodeDecodeError:
                    raise ConnectionBroken("the connection broke: a message is not UTF-8") from None
        elif frame.opcode is Opcode.CLOSE:
            self._ended = True

    def _end(self) -> ConnectError:
        received = self._protocol.close_rcvd
        if received is None:
            fault = self._protocol.parser_exc
            return ConnectionBroken(f"the connection broke: {fault or 'it ended'}")
        if received.code == _REPLACED:
            return Replaced("another connection of the same participant took over")
        return ConnectionBroken(f"the connection broke: {received.reason or 'closed'} ({received.code})")

    async def _flush(self) -> None:
        async with self._write_lock:
            data = b""
            for part in self._protocol.data_to_send():
                if part == SEND_EOF:
                    break
                data += part
            if data:
                await self._stream.send(data)

    async def aclose(self) -> None:
        """Drops the connection."""
        await anyio.aclose_forcefully(self._stream)


async def dial(address: Address, since: Cursor | None) -> Connection:
    """Dials once."""
    url = address.websocket(since)
    try:
        with anyio.fail_after(address.connect_timeout_s):
            return await _open(address, url)
    except TimeoutError:
        raise Unreachable("cannot connect to the gateway: connecting took too long") from None


async def _open(address: Address, url: str) -> Connection:
    try:
        uri = parse_uri(url)
    except (InvalidURI, ValueError):
        raise _bad("it cannot be read") from None
    try:
        if uri.secure:
            stream: ByteStream = await anyio.connect_tcp(
                uri.host, uri.port, tls=True, ssl_context=address.tls, tls_hostname=uri.host
            )
        else:
            stream = await anyio.connect_tcp(uri.host, uri.port)
    except (OSError, ssl.SSLError, anyio.BrokenResourceError, anyio.EndOfStream) as error:
        raise Unreachable(f"cannot connect to the gateway: {_why(error)}") from None
    try:
        protocol = await _shake_hands(stream, ClientProtocol(uri, max_size=FRAME_BYTES_MAX), address.token)
        return Connection(stream, protocol)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.aclose_forcefully(stream)
        raise


async def _shake_hands(stream: ByteStream, protocol: ClientProtocol, token: str | None) -> ClientProtocol:
    request = protocol.connect()
    if token is not None:
        if not token.isascii() or not token.isprintable():
            raise Unauthenticated("the gateway requires a valid token: a token has printable ASCII characters only")
        request.headers["Authorization"] = f"Bearer {token}"
    protocol.send_request(request)
    try:
        for part in protocol.data_to_send():
            await stream.send(part)
        while True:
            try:
                protocol.receive_data(await stream.receive(_READ_BYTES))
            except anyio.EndOfStream:
                protocol.receive_eof()
            if protocol.handshake_exc is not None:
                raise _refused(protocol.handshake_exc)
            if protocol.events and isinstance(protocol.events[0], Response):
                protocol.events.pop(0)
                return protocol
            if protocol.state.name == "CLOSED":
                raise Unreachable("cannot connect to the gateway: it closed the connection")
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        raise Unreachable(f"cannot connect to the gateway: {_why(error)}") from None


def _refused(why: Exception) -> ConnectError:
    if isinstance(why, InvalidStatus):
        status = why.response.status_code
        message = bytes(why.response.body or b"").decode(errors="replace").strip()[:_MESSAGE_CHARS]
        if status == 401:
            return Unauthenticated(f"the gateway requires a valid token: {message}")
        if status == 403:
            return Forbidden(f"access to the topic is denied: {message}")
        return BadStatus(status, message)
    if isinstance(why, InvalidHandshake):
        return Unreachable(f"cannot connect to the gateway: {why}")
    return ConnectionBroken(f"the connection broke: {why}")


class Backoff:
    """Waits that double up to a limit. Each is shortened at random, to half of it at most, so that many participants do not
    reconnect at once."""

    def __init__(self) -> None:
        self._attempts = 0

    def next(self) -> float:
        """The next wait, in seconds."""
        whole = min(_FIRST_WAIT_S * 2.0 ** min(self._attempts, 16), _LONGEST_WAIT_S)
        self._attempts += 1
        return whole / 2 + random.random() * whole / 2

    def reset(self) -> None:
        """Makes the next wait short again, after a success."""
        self._attempts = 0

