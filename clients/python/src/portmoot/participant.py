"""A participant of one topic, for an agent's program."""

from __future__ import annotations

import json
import logging
import os
import secrets
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from . import _json
from . import events as _events
from ._api import post
from ._check import Answer, Call, Mismatch, Request, strict
from ._connection import Address, Backoff, Connection, dial
from ._envelope import Envelope, EnvelopeError, Place, write
from ._json import JsonError
from ._kind import CHAT, GATEWAY, PROPOSAL, REQUEST, Kind, KindError
from ._pending import PendingProposal, PendingRequest, Slot, State, Unknown, Updates
from ._protocol import Cursor, Job, Protocol, Refuse, ReplyTo
from ._queue import Events
from ._tools import definition_in
from .errors import (
    Answered,
    Busy,
    CallError,
    CallTimeout,
    Closed,
    ConnectError,
    ConnectionBroken,
    InvalidEnvelope,
    Lost,
    NotAllowed,
    NotConnected,
    RpcError,
    ToolFailed,
)
from .proposal import IncomingProposal, LikeRule, Proposal, WaitingProposal, result, tool_outcome
from .server import IncomingRequest, Server, ToolResult

log = logging.getLogger("portmoot")

Mode: TypeAlias = Literal["all", "directed", "directed+proposals"]
"""The envelopes that a participant receives (MCPx v0.1, 6.3). It always receives broadcasts and envelopes that name it:
``directed`` is these only, ``directed+proposals`` these and all proposals, for reviewers."""
CallMode: TypeAlias = Literal["request", "proposal"]
"""The way in which a participant may make a call."""

Reviewer: TypeAlias = Callable[[IncomingProposal], Awaitable[None]]
_Reviewer = TypeVar("_Reviewer", bound=Reviewer)

CALLS_MAX = 64
"""Requests that are answered at one time. Further ones are answered with an error that says to try again."""
REVIEWS_MAX = 256
"""Proposals that wait for ``on_proposal`` at one time; further ones are left to others, and can be found by ``waiting``."""
_INTERNAL, _BUSY = -32603, -32000
_CLOSE_TIMEOUT_S = 1.0
_NOTE = "portmoot/note"
"""The key of ``_meta`` with the note of a reviewer, in the params of a request that fulfils a proposal."""
_PAGE = 100
_LAST_LOOK_S = 1.0
"""How much later the gateway is asked once more about a proposal that it does not have."""


def connect(
    url: str | None = None,
    *,
    token: str | None = None,
    topic: str | None = None,
    mode: Mode = "all",
    serve: Server | None = None,
    echo: bool = False,
    places: bool = False,
    since: Cursor | None = None,
    tls: ssl.SSLContext | None = None,
    connect_timeout: float = 10,
    request_timeout: float = 60,
    proposal_timeout: float = 360,
) -> Participant:
    """Joins a topic: ``async with portmoot.connect(url, token=..., topic="main") as me: ...``.

    When the connection breaks later, the participant reconnects, with growing waits.

    Args:
        url: the gateway: ``http://``, ``https://``, ``ws://`` or ``wss://``, with or without ``/ws`` or ``/mcp`` at the end. By
            default ``PORTMOOT_URL`` of the environment, else ``http://127.0.0.1:7070``.
        token: by default ``PORTMOOT_TOKEN``. Without one, the gateway decides what an anonymous participant may do.
        topic: by default ``PORTMOOT_TOPIC``, else ``main``.
        mode: the envelopes to receive.
        serve: answers requests that name this participant. Without it, only the handshake, pings and empty lists are answered.
        echo: whether to receive one's own envelopes.
        places: whether to receive envelopes with their places in the topic: :meth:`Participant.place`.
        since: the ``cursor`` of an earlier connection, also of another process: the history begins there.
        tls: what is trusted, where the gateway speaks TLS; by default what the machine trusts.
        connect_timeout: seconds to connect, up to the welcome.
        request_timeout: seconds to the answer to a request.
        proposal_timeout: seconds that :meth:`Participant.call` waits for the outcome of a proposal (by default, a gateway's
            proposals expire after 300).

    Raises:
        ConnectError: from ``async with``, when the first attempt fails.
    """

    def read(name: str) -> str | None:
        return os.environ.get(name) or None

    address = Address(
        url=url or read("PORTMOOT_URL") or "http://127.0.0.1:7070",
        token=token or read("PORTMOOT_TOKEN"),
        topic=topic or read("PORTMOOT_TOPIC") or "main",
        mode=mode,
        echo=echo,
        tls=tls,
        connect_timeout_s=connect_timeout,
        places=places,
    )
    return Participant(address, serve or Server("participant"), since, request_timeout, proposal_timeout)


class Participant:
    """A participant of one topic; made by :func:`connect`."""

    def __init__(
        self, address: Address, serve: Server, since: Cursor | None, request_timeout: float, proposal_timeout: float
    ) -> None:
        self.request_timeout = request_timeout
        """Seconds to the answer to a request."""
        self.proposal_timeout = proposal_timeout
        """Seconds that :meth:`call` waits for the outcome of a proposal."""
        self._address = address
        self._serve = serve
        self._id_prefix = secrets.token_hex(16)
        self._next_id = 0
        self._protocol = Protocol(is_filtered=address.mode != "all", id_prefix=self._id_prefix, cursor=since)
        self._connection: Connection | None = None
        self._is_welcomed = False
        self._changed: anyio.Event | None = None
        self._final: ConnectError | None = None
        self._tasks: TaskGroup | None = None
        self._stop = anyio.CancelScope()
        self._subscribers: list[Events] = []
        self._first: Events | None = None
        self._answering = 0
        self._reviewers: list[Reviewer] = []
        self._unreviewed: list[_events.Proposed] = []
        self._reviewing = 0
        self._was_away = False

    # Joining and leaving.

    async def __aenter__(self) -> Participant:
        if self._tasks is not None or self._final is not None:
            raise RuntimeError("a participant connects once: call portmoot.connect() again")
        self._changed = anyio.Event()
        self._first = Events()
        self._subscribers.append(self._first)
        connection = await dial(self._address, self._protocol.cursor)
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._tasks = tasks
        try:
            tasks.start_soon(self._run, connection)
            with anyio.fail_after(self._address.connect_timeout_s):
                await self.connected()
        except BaseException as error:
            await self._leave()
            if isinstance(error, TimeoutError):
                raise ConnectionBroken("the connection broke: no welcome in time") from None
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    async def close(self) -> None:
        """Leaves the topic, after the envelopes that wait to be sent. The end of ``async with`` does the same."""
        connection = self._connection
        if connection is not None:
            connection.close()
            with anyio.move_on_after(_CLOSE_TIMEOUT_S):
                while self._connection is connection:
                    await self._wait()
        self._ended(Closed("closed"))
        self._stop.cancel()

    async def _leave(self) -> None:
        """Closes, and waits for the end of all tasks. What the tasks run never raises here."""
        tasks, self._tasks = self._tasks, None
        if tasks is None:
            return
        try:
            await self.close()
        finally:
            tasks.cancel_scope.cancel()
            await tasks.__aexit__(None, None, None)

    async def connected(self) -> None:
        """Waits until the participant is in the topic. Returns at once when it is there.

        Raises:
            ConnectError: it will not reconnect.
        """
        while not self._is_welcomed:
            if self._final is not None:
                raise self._final
            await self._wait()

    async def _wait(self) -> None:
        assert self._changed is not None, "the participant is not connected: use `async with`"
        await self._changed.wait()

    def _notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = anyio.Event()

    # What it knows.

    @property
    def id(self) -> str:
        """Its id, by the latest welcome: the gateway chooses it by the token."""
        return self._protocol.id

    @property
    def you(self) -> _events.ParticipantInfo:
        """Its id and capabilities, by the latest welcome."""
        return self._protocol.you or _events.ParticipantInfo("")

    @property
    def others(self) -> dict[str, _events.ParticipantInfo]:
        """The other participants of the topic, by id."""
        return dict(sorted(self._protocol.others.items()))

    @property
    def violations(self) -> dict[str, int]:
        """The number of protocol violations of each participant."""
        return dict(self._protocol.violations)

    @property
    def cursor(self) -> Cursor | None:
        """The place in the topic's history at the latest connect, if the topic keeps one."""
        return self._protocol.cursor

    def place(self, envelope: Envelope) -> Place | None:
        """The place of an envelope in the topic, and when the gateway took it, where ``connect(places=True)`` asks for it: the same live
        and in the history. Presence and messages to this participant alone have none."""
        return Place.read(envelope.frame) if self._address.places else None

    @property
    def mode(self) -> str:
        """The envelopes that it receives."""
        return self._address.mode

    def events(self) -> Events:
        """Subscribes to events. The first subscription begins with the first welcome, a later one with the next event."""
        first, self._first = self._first, None
        if first is not None:
            return first
        later = Events()
        if self._final is not None:
            later._end()
        self._subscribers.append(later)
        return later

    def on_proposal(self, reviewer: _Reviewer) -> _Reviewer:
        """Decorator: the function reviews each proposal of others that arrives, those since the connect too. It may wait for a
        person: reviews run at the same time. An exception is logged and leaves the proposal undecided.

        Proposals from before the connect are in :meth:`waiting`.
        """
        self._reviewers.append(reviewer)
        unreviewed, self._unreviewed = self._unreviewed, []
        for proposed in unreviewed:
            self._review(proposed)
        return reviewer

    # Sending.

    async def chat(self, text: str, *, to: Sequence[str] = (), format: Literal["plain", "markdown"] = "plain") -> str:
        """Sends a chat message, by default to the whole topic; returns the envelope's id. A refusal of the gateway arrives as
        :class:`events.Refused`.

        Raises:
            NotConnected, Busy: nothing was sent.
        """
        return await self.send(CHAT, {"text": text, "format": format}, to=to)

    async def send(
        self, kind: str, payload: Mapping[str, Any], *, to: Sequence[str] = (), correlation_id: str | None = None
    ) -> str:
        """Sends an envelope of any kind to these participants, or to all if ``to`` is empty; returns its id. The payload is not
        checked against the kind; receivers check it.

        Raises:
            InvalidEnvelope, NotConnected, Busy: nothing was sent.
        """
        sent = self._send(None, kind, tuple(to), correlation_id, _written(payload))
        await anyio.lowlevel.checkpoint()
        return sent

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        to: Sequence[str] = (),
        correlation_id: str | None = None,
    ) -> str:
        """Sends an MCP notification, such as ``notifications/tools/list_changed``; returns the envelope's id."""
        written = None if params is None else _written(params)
        payload = _json.write_object({"jsonrpc": '"2.0"', "method": _json.write(method), "params": written})
        return self._send(None, f"{REQUEST}:{method}", tuple(to), correlation_id, payload)

    async def request(
        self, to: str | Sequence[str], method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Sends an MCP request and waits for the result. Only ``to`` may answer.

        The request is sent even if the latest welcome does not allow it; the gateway decides.

        Raises:
            Answered: the answer is an error.
            Refused: the gateway refused it.
            CallTimeout, Lost: the call may have been made. It is never repeated.
            InvalidEnvelope, NotConnected, Busy: nothing was sent.
        """
        return await self._request(_names(to), method, None if params is None else _written(params), None, timeout)

    async def propose(
        self, to: str | Sequence[str], method: str, params: Mapping[str, Any] | None = None
    ) -> Proposal:
        """Proposes a call for another participant to make (MCPx v0.1, 3.2). :meth:`Proposal.outcome` waits for the result.

        Raises:
            InvalidEnvelope, NotConnected, Busy: nothing was sent.
        """
        names = _names(to)
        call, _ = self._call(method, None if params is None else _written(params))
        id, updates = self._envelope_id(), Updates()
        payload = _json.write_object({"method": _json.write(method), "params": call.params_text})
        self._protocol.pending.add_proposal(id, PendingProposal(names, call.kind(REQUEST), updates))
        proposal = Proposal(self, id, updates)
        self._send(id, call.kind(PROPOSAL), names, None, payload)
        await anyio.lowlevel.checkpoint()
        return proposal

    def call_mode(self, to: str | Sequence[str], method: str, params: Mapping[str, Any] | None = None) -> CallMode | None:
        """How the latest welcome allows to make a call; ``None`` if it does not.

        Raises:
            InvalidEnvelope: the call cannot be written as an envelope.
        """
        call, _ = self._call(method, None if params is None else _written(params))
        if self._protocol.allows(call.kind(REQUEST), _names(to)):
            return "request"
        if self._protocol.allows(call.kind(PROPOSAL), _names(to)):
            return "proposal"
        return None

    async def call(
        self, to: str, method: str, params: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> dict[str, Any]:
        """Makes a call in the way that :meth:`call_mode` returns: as a request, or as a proposal whose outcome it waits for.

        Raises:
            NotAllowed: neither is allowed; nothing was sent.
            CallError: as :meth:`request` or :meth:`Proposal.outcome`.
        """
        mode = self.call_mode(to, method, params)
        if mode == "request":
            return await self.request(to, method, params, timeout=timeout)
        if mode == "proposal":
            proposal = await self.propose(to, method, params)
            return await proposal.outcome(timeout)
        raise NotAllowed(f"your capabilities allow neither a request nor a proposal of `{REQUEST}:{method}`")

    async def call_tool(
        self, to: str, tool: str, arguments: Mapping[str, Any] | None = None, *, timeout: float | None = None
    ) -> ToolResult:
        """Calls a tool in the way that the latest welcome allows: :meth:`call` with ``tools/call``."""
        params = {"name": tool, "arguments": dict(arguments or {})}
        return ToolResult.read(await self.call(to, "tools/call", params, timeout=timeout))

    async def propose_tool(
        self, to: str | Sequence[str], tool: str, arguments: Mapping[str, Any] | None = None
    ) -> Proposal:
        """Proposes the call of a tool."""
        return await self.propose(to, "tools/call", {"name": tool, "arguments": dict(arguments or {})})

    async def definition(self, to: str, tool: str) -> str | None:
        """The definition of a tool, as the participant that runs it lists it now and as it was written there, for
        :func:`definition_digest`; ``None`` if it lists no such tool. Reads all pages of the list.

        Raises:
            BadList: the list has more than 100 pages, or cannot be read in one way only.
            CallError: as :meth:`request`.
        """

        async def page(cursor: str | None) -> Answer:
            params = None if cursor is None else _written({"cursor": cursor})
            return await self._answer_to((to,), "tools/list", params, None, None)

        return await definition_in(page, tool)

    # Proposals.

    async def waiting(self, *, all: bool = False) -> list[WaitingProposal]:
        """The proposals that wait for a decision, oldest first: one's own, and those that this participant could decide. With ``all``
        those that are over too, as far as the gateway keeps them.

        Needs a capability for the gateway's tools (``mcp/request:tools/call:list_proposals``).
        """
        found: list[WaitingProposal] = []
        after: str | None = None
        while True:
            arguments: dict[str, Any] = {"all": all, "limit": _PAGE, **({"after": after} if after else {})}
            page = await self._gateway_tool("list_proposals", arguments)
            found += [WaitingProposal._read(listed, self) for listed in page.get("proposals", [])]
            after = page.get("next")
            if not page.get("more") or after is None:
                return found

    async def withdraw(self, proposal: str, reason: str = "") -> None:
        """Withdraws one's own proposal, by its id or that of its envelope, while it is pending. Needs no capability of its own.

        Raises:
            ToolFailed: it is decided already, or another participant's.
        """
        await self._gateway_tool("withdraw_proposal", {"proposal": proposal, "reason": reason})

    async def reject(self, proposal: str, reason: str = "") -> None:
        """Rejects a proposal, by its id or that of its envelope, so that its proposer does not wait for it.

        Raises:
            ToolFailed: it is decided already, or this participant may not decide.
        """
        await self._gateway_tool("reject_proposal", {"proposal": proposal, "reason": reason})

    async def claim(self, proposal: str) -> None:
        """Shows others who may decide about a proposal that this participant looks at it, by its id or that of its envelope. It ends
        after five minutes, unless it is claimed again, and stops no participant from deciding.

        Raises:
            ToolFailed: it is decided already, or this participant may not decide.
        """
        await self._gateway_tool("claim_proposal", {"id": proposal})

    async def extend(self, proposal: str) -> None:
        """Gives ten minutes more to decide about another participant's proposal, by its id or that of its envelope; ten times at most.

        Raises:
            ToolFailed: it is decided already, has had all of its time, or this participant may not decide.
        """
        await self._gateway_tool("extend_proposal", {"id": proposal})

    async def amend(self, proposal: str, arguments: Mapping[str, Any]) -> None:
        """Replaces the arguments of one's own proposal of a tool call, by its id or that of its envelope, until it is decided; 32 times
        at most. Approvals of the former arguments are void.

        Raises:
            ToolFailed: it is decided already, was amended as often as it may be, or is another participant's.
        """
        await self._gateway_tool("amend_proposal", {"id": proposal, "arguments": dict(arguments)})

    async def like(
        self, proposal: str, *, hours: float = 1, uses: int = 20, when: str = "", tool: str | None = None
    ) -> LikeRule:
        """Makes the rule that would approve the like of a proposal that waits, on this participant's authority. Nothing is decided by
        it: show its ``sentence`` to the person, then :meth:`add_rule` puts it in force.

        It goes to the gateway's REST API: no envelope and no tool makes a rule.

        Args:
            proposal: its id for the gateway, as :meth:`waiting` has it.
            hours: for how long, from ten minutes to 8 hours.
            uses: the number of calls, the proposed one included: from 1 to 20.
            when: conditions in place of values of the call, as TOML: ``"/amount" = { integer = [1, 100] }``. Without any, only the
                same arguments are like them.
            tool: the tool's own name, as the author of the rule typed it: needed where the tool does not say that it destroys nothing.

        Raises:
            Refused: the gateway makes none, such as for a condition that the call does not meet.
            NotConnected, Lost, CallTimeout: it cannot be reached, or gave no answer.
        """
        terms = {"for_seconds": round(hours * 3600), "uses": uses, "when": when, "tool": tool}
        drafted = await post(self._address, ["proposals", proposal, "like"], terms, self.request_timeout)
        texts = {key: str(drafted[key]) for key in ("rule", "topic", "sentence", "text")}
        return LikeRule(**texts, tool=tool)

    async def add_rule(self, rule: LikeRule) -> str:
        """Puts the rule in force that approves the like of a proposal. The proposal is the first call that it approves. Returns the
        rule's id and version.

        Raises:
            Refused: the gateway does not accept it.
            NotConnected, Lost, CallTimeout: it cannot be reached, or gave no answer.
        """
        body = {"rule": rule.text, "tool": rule.tool}
        return str((await post(self._address, ["topics", rule.topic, "rules"], body, self.request_timeout))["rule"])

    async def _approve(self, id: str, digest: str, arguments: Mapping[str, Any] | None, note: str) -> str:
        decision: dict[str, Any] = {"id": id, "digest": digest, **({"note": note} if note else {})}
        if arguments is not None:
            decision["arguments"] = dict(arguments)
        decided = await self._gateway_tool("approve_proposal", decision)
        return str(decided.get("state", ""))

    async def _gateway_tool(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        try:
            return tool_outcome(await self.request(GATEWAY, "tools/call", params))
        except Answered as error:
            raise ToolFailed(error.message) from None

    async def _fulfil(self, proposed: _events.Proposed, params: Mapping[str, Any] | None, note: str) -> dict[str, Any]:
        # As they were written: what was reviewed is what runs.
        written = proposed.call.params_text if params is None else _written(params)
        if note:
            written = _noted(written, note)
        return await self._request(proposed.to, proposed.call.method, written, proposed.id, None)

    def _forget(self, id: str) -> None:
        self._protocol.pending.remove(id)

    # The way out.

    async def _request(
        self, to: tuple[str, ...], method: str, params: str | None, correlation_id: str | None, timeout: float | None
    ) -> dict[str, Any]:
        return result(await self._answer_to(to, method, params, correlation_id, timeout))

    async def _answer_to(
        self, to: tuple[str, ...], method: str, params: str | None, correlation_id: str | None, timeout: float | None
    ) -> Answer:
        if not to:
            raise InvalidEnvelope("a request needs an addressee")
        call, payload = self._call(method, params)
        kind, id, slot = call.kind(REQUEST), self._envelope_id(), Slot()
        assert call.rpc_id is not None
        self._protocol.pending.add_request(id, PendingRequest(to, kind, call.rpc_id, slot))
        try:
            self._send(id, kind, to, correlation_id, payload)
            with anyio.fail_after(self.request_timeout if timeout is None else timeout):
                return await slot.wait()
        except CallTimeout:
            raise
        except TimeoutError:
            raise CallTimeout("no answer in time; the call may still have been made") from None
        finally:
            self._forget(id)

    def _envelope_id(self) -> str:
        self._next_id += 1
        return f"{self._id_prefix}-{self._next_id}"

    def _call(self, method: str, params: str | None) -> tuple[Call, str]:
        """A call with a new JSON-RPC id, checked as its receiver will check it, and its payload."""
        self._next_id += 1
        try:
            members = {"jsonrpc": '"2.0"', "id": str(self._next_id), "method": _json.write(method), "params": params}
            payload = _json.write_object(members)
            act = strict(f"{REQUEST}:{method}", payload)
            if not isinstance(act, Request):
                raise InvalidEnvelope("it is not a request")
            act.call.kind(REQUEST)
        except (JsonError, KindError, Mismatch) as error:
            raise InvalidEnvelope(f"invalid envelope: {error}") from None
        return act.call, payload

    def _send(self, id: str | None, kind: str, to: tuple[str, ...], correlation_id: str | None, payload: str) -> str:
        id = id or self._envelope_id()
        if self._connection is None or not self._is_welcomed:
            raise NotConnected("not connected to the gateway at the moment")
        try:
            if Kind.parse(kind).is_reserved:
                raise InvalidEnvelope(f"invalid envelope: the kind `{kind}` is reserved for the gateway")
            frame = write(
                id=id, sender=self.id, to=to, kind=kind, correlation_id=correlation_id, payload=payload
            )
            # Checked as the gateway will check it, so that the caller gets the error.
            Envelope.read(frame, tolerant=False)
        except (EnvelopeError, JsonError, KindError) as error:
            raise InvalidEnvelope(f"invalid envelope: {error}") from None
        self._connection.send(frame)
        return id

    # The way in.

    async def _run(self, first: Connection) -> None:
        """Keeps the participant connected, first over this connection, until it ends for good."""
        backoff = Backoff()
        connection: Connection | None = first
        with self._stop:
            while True:
                try:
                    if connection is None:
                        connection = await dial(self._address, self._protocol.cursor)
                    why = await self._serve_connection(connection)
                except ConnectError as error:
                    why = error
                if self._is_welcomed:
                    backoff.reset()
                connection = None
                if not why.is_transient:
                    self._ended(why)
                    return
                self._disconnected(why, is_final=False)
                await anyio.sleep(backoff.next())

    async def _serve_connection(self, connection: Connection) -> ConnectError:
        ended: list[ConnectError] = []
        self._connection = connection
        try:
            async with anyio.create_task_group() as both:

                async def first_to_end(work: Callable[[Connection], Awaitable[ConnectError]]) -> None:
                    ended.append(await work(connection))
                    both.cancel_scope.cancel()

                both.start_soon(first_to_end, self._read)
                both.start_soon(first_to_end, self._write)
                with anyio.move_on_after(self._address.connect_timeout_s):
                    while not self._is_welcomed:
                        await self._wait()
                if not self._is_welcomed:
                    ended.append(ConnectionBroken("the connection broke: no welcome in time"))
                    both.cancel_scope.cancel()
        finally:
            self._connection = None
            self._notify()
            with anyio.CancelScope(shield=True):
                await connection.aclose()
        return ended[0]

    async def _read(self, connection: Connection) -> ConnectError:
        try:
            while True:
                self._receive(await connection.read())
        except ConnectError as error:
            return error

    async def _write(self, connection: Connection) -> ConnectError:
        try:
            await connection.write()
        except ConnectError as error:
            return error
        return Closed("closed")

    def _receive(self, frame: str) -> None:
        try:
            envelope = Envelope.read(frame)
        except EnvelopeError as error:
            log.warning("the gateway sent an invalid envelope: %s", error)
            return
        for reaction in self._protocol.receive(envelope):
            if isinstance(reaction, Job):
                self._start(reaction)
            elif isinstance(reaction, Refuse):
                self._answer(reaction.reply_to, None, reaction.error)
            else:
                if isinstance(reaction, _events.Welcomed):
                    self._is_welcomed = True
                    self._notify()
                    self._look_after_proposals()
                self._publish(reaction)
                if isinstance(reaction, _events.Proposed) and reaction.sender != self.id:
                    self._review(reaction)

    def _publish(self, event: _events.Event) -> None:
        for subscriber in self._subscribers:
            subscriber._push(event)

    def _disconnected(self, why: ConnectError, *, is_final: bool) -> None:
        self._is_welcomed = False
        self._was_away = True
        self._protocol.disconnected()
        self._notify()
        self._publish(_events.Disconnected(why, is_final))

    def _ended(self, why: ConnectError) -> None:
        if self._final is None:
            self._final = why
            self._disconnected(why, is_final=True)
            for subscriber in self._subscribers:
                subscriber._end()

    # What was decided while it was away.

    def _look_after_proposals(self) -> None:
        """Asks about the proposals from before this connection: the topic's history may be too short for their ends, or absent."""
        was_away, self._was_away = self._was_away, False
        open = tuple(self._protocol.pending.proposals)
        if was_away and open and self._tasks is not None and GATEWAY in self._protocol.others:
            self._tasks.start_soon(self._look_after, open)

    async def _look_after(self, proposals: tuple[str, ...]) -> None:
        lost = [id for id in proposals if not await self._look(id, is_last=False)]
        if lost:
            # The gateway may be about to write down what arrived on the connection that broke.
            await anyio.sleep(_LAST_LOOK_S)
        for id in lost:
            await self._look(id, is_last=True)

    async def _look(self, id: str, *, is_last: bool) -> bool:
        """Asks what became of a proposal. False if the gateway does not have it."""
        pending = self._protocol.pending.proposals.get(id)
        if pending is None:
            return True
        try:
            seen = await self._gateway_tool("wait_for_proposal", {"proposal": id, "wait": False})
            if seen.get("answered") is True:
                pending.updates.push(await self._answer_of(id, pending.kind))
            elif seen.get("state") in _events.STATES and seen["state"] != "pending":
                state = State(str(seen["state"]), seen.get("reason"))
                self._protocol.pending.update_state(id, state, seen.get("by"), seen.get("fulfilment"))
        except (NotConnected, Lost):
            # The next welcome leads here again.
            return True
        except ToolFailed as error:
            if str(error).startswith("unknown_target"):
                if is_last:
                    pending.updates.push(Unknown())
                return False
            log.warning("the gateway does not say what became of the proposal %s: %s", id, error)
        except (CallError, ConnectError) as error:
            log.warning("the gateway does not say what became of the proposal %s: %s", id, error)
        return True

    async def _answer_of(self, id: str, kind: str) -> Answer:
        """The answer that a proposal of this participant led to."""
        try:
            found = await self.request(GATEWAY, "tools/call", {"name": "wait_for_proposal", "arguments": {"proposal": id}})
        except Answered as error:
            return Answer(None, None, {"code": error.code, "message": error.message, "data": error.data})
        if Kind.parse(kind).method == "tools/call":
            return Answer(None, found, None)
        # A tool has the answer of another method as text.
        text = ToolResult.read(found).text
        try:
            read = json.loads(text)
        except ValueError:
            return Answer(None, None, {"code": _INTERNAL, "message": text})
        return Answer(None, None, read) if found.get("isError") else Answer(None, read, None)

    # Answering and reviewing.

    def _start(self, job: Job) -> None:
        if self._answering >= CALLS_MAX or self._tasks is None:
            error = RpcError(_BUSY, "this participant is answering too many requests; try again")
            self._answer(job.reply_to, None, error)
            return
        self._answering += 1
        self._tasks.start_soon(self._work, job)

    async def _work(self, job: Job) -> None:
        written: str | None = None
        failed: RpcError | None = None
        try:
            written = _json.write(await self._serve.answer(IncomingRequest(job, self)))
        except RpcError as error:
            failed = error
        except Exception:
            log.exception("the request `%s` of %s failed", job.envelope.kind, job.envelope.sender)
            failed = RpcError(_INTERNAL, "the tool failed")
        finally:
            self._answering -= 1
        self._answer(job.reply_to, written, failed)

    def _answer(self, reply_to: ReplyTo, written: str | None, failed: RpcError | None) -> None:
        if failed is not None:
            try:
                data = None if failed.data is None else _json.write(failed.data)
            except JsonError:
                data = None
            members = {"code": str(failed.code), "message": _json.write(failed.message), "data": data}
            failure = _json.write_object(members)
        else:
            failure = None
        members = {"jsonrpc": '"2.0"', "id": reply_to.rpc_id, "result": written, "error": failure}
        try:
            self._send(None, reply_to.kind, reply_to.to, reply_to.envelope_id, _json.write_object(members))
        except (NotConnected, Busy, InvalidEnvelope) as error:
            # The connection is lost, and the request with it; or its queue is full.
            log.warning("an answer was dropped: %s", error)

    def _review(self, proposed: _events.Proposed) -> None:
        if not self._reviewers:
            self._unreviewed = [*self._unreviewed, proposed][-REVIEWS_MAX:]
            return
        if self._tasks is None or self._reviewing >= REVIEWS_MAX:
            log.warning("a proposal was not reviewed: too many wait for a decision")
            return
        for reviewer in self._reviewers:
            self._reviewing += 1
            self._tasks.start_soon(self._run_reviewer, reviewer, IncomingProposal(proposed, self))

    async def _run_reviewer(self, reviewer: Reviewer, proposal: IncomingProposal) -> None:
        try:
            await reviewer(proposal)
        except Exception:
            log.exception("the review of the proposal %r failed", proposal.id)
        finally:
            self._reviewing -= 1

    def __repr__(self) -> str:
        return f"Participant({self.id!r})"


def _written(value: Mapping[str, Any]) -> str:
    try:
        return _json.write(dict(value))
    except JsonError as error:
        raise InvalidEnvelope(f"invalid envelope: {error}") from None


def _noted(params: str | None, note: str) -> str:
    """Params with a note for the proposer. All else stays as it was written."""
    try:
        members = _json.members_once(params or "{}")
        meta = _json.members_once(members["_meta"].raw) if "_meta" in members else {}
        inner = {name: member.raw for name, member in meta.items()}
        outer = {name: member.raw for name, member in members.items()}
        return _json.write_object({**outer, "_meta": _json.write_object({**inner, _NOTE: _json.write(note)})})
    except JsonError as error:
        raise InvalidEnvelope(f"invalid envelope: {error}") from None


def _names(to: str | Sequence[str]) -> tuple[str, ...]:
    return (to,) if isinstance(to, str) else tuple(to)
