"""A gateway that is a script, in memory: the participant's own sockets, frames and tasks run against it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

import portmoot


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    backend: str = request.param
    return backend


class Session:
    """One connection of a participant, from the gateway's side."""

    def __init__(self, stream: SocketStream, protocol: ServerProtocol, path: str, token: str | None) -> None:
        self._stream = stream
        self._protocol = protocol
        self.path = path
        self.token = token
        self._received: list[dict[str, Any]] = []

    async def say(self, kind: str, payload: object, *, sender: str = "portmoot", **members: object) -> None:
        envelope = {"protocol": "mcpx/v0.1", "from": sender, "kind": kind, "payload": payload, **members}
        envelope.setdefault("id", f"{sender}-{id(envelope)}-{anyio.current_time()}")
        await self.text(json.dumps(envelope))

    async def text(self, text: str) -> None:
        self._protocol.send_text(text.encode())
        await self._flush()

    async def welcome(self, *capabilities: str, others: tuple[str, ...] = ("portmoot",), history: object = None) -> None:
        seen = [{"id": id, "capabilities": ["mcp/*"]} for id in others]
        payload: dict[str, object] = {"you": {"id": "me", "capabilities": list(capabilities)}, "participants": seen}
        if history is not None:
            payload["history"] = history
        await self.say("system/welcome", payload, sender="system:gateway", to=["me"])

    async def receive(self) -> dict[str, Any]:
        while not self._received:
            self._protocol.receive_data(await self._stream.receive())
            await self._flush()
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                    self._received.append(json.loads(bytes(event.data)))
        return self._received.pop(0)

    async def close(self, code: int = 1001) -> None:
        self._protocol.send_close(code)
        await self._flush()
        await self._stream.aclose()

    async def drop(self) -> None:
        await anyio.aclose_forcefully(self._stream)

    async def _flush(self) -> None:
        for part in self._protocol.data_to_send():
            if part:
                await self._stream.send(part)


class Gateway:
    def __init__(self, url: str) -> None:
        self.url = url
        self._sessions, self._next = anyio.create_memory_object_stream[Session](16)
        self.refuse: tuple[int, str] | None = None

    async def session(self) -> Session:
        return await self._next.receive()

    async def serve(self, stream: SocketStream) -> None:
        protocol = ServerProtocol()
        while True:
            protocol.receive_data(await stream.receive())
            requests = [one for one in protocol.events_received() if isinstance(one, Request)]
            if requests:
                break
        request = requests[0]
        if self.refuse is not None:
            protocol.send_response(protocol.reject(*self.refuse))
        else:
            protocol.send_response(protocol.accept(request))
        for part in protocol.data_to_send():
            if part:
                await stream.send(part)
        if self.refuse is not None:
            await stream.aclose()
            return
        token = request.headers.get("Authorization")
        await self._sessions.send(Session(stream, protocol, request.path, token))
        await anyio.sleep_forever()

    @asynccontextmanager
    async def joined(
        self, *capabilities: str, others: tuple[str, ...] = ("portmoot",), history: object = None, **options: Any
    ) -> AsyncIterator[tuple[portmoot.Participant, Session]]:
        """A participant in its topic, and the gateway's side of it."""
        session: list[Session] = []

        async def welcome() -> None:
            session.append(await self.session())
            await session[0].welcome(*capabilities, others=others, history=history)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(welcome)
            async with portmoot.connect(self.url, token="secret", **options) as me:
                yield me, session[0]


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    gateway = Gateway(f"http://127.0.0.1:{port}")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, gateway.serve)
        with anyio.fail_after(20):
            yield gateway
        tasks.cancel_scope.cancel()
    await listener.aclose()
