"""Limits of the README: at each, what still works and what does not; and a gateway that says nothing."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from conftest import Gateway

import portmoot
from portmoot import _connection, errors, events, participant
from portmoot._envelope import Envelope
from portmoot._json import DEPTH_MAX
from portmoot._pending import PENDING_MAX, PendingCalls, PendingProposal, PendingRequest, Slot, Updates
from portmoot._protocol import RECENT_ENVELOPES_MAX, RECENT_PROPOSALS_MAX, VIOLATORS_MAX, Protocol
from portmoot._queue import EVENTS_SIZE_MAX, Events

pytestmark = pytest.mark.anyio


def call(number: str, kind: str = "mcp/request:tools/call:wait", **members: Any) -> dict[str, Any]:
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait"}}
    envelope = {"protocol": "mcpx/v0.1", "id": number, "from": "ann", "to": ["me"], "kind": kind, "payload": payload}
    return {**envelope, **members}


async def test_more_requests_than_are_answered_at_one_time(gateway: Gateway) -> None:
    server, go = portmoot.Server("me"), anyio.Event()

    @server.tool
    async def wait() -> str:
        await go.wait()
        return "done"

    async with gateway.joined("mcp/response:*", serve=server) as (_, session):
        for number in range(participant.CALLS_MAX + 1):
            await session.text(json.dumps(call(str(number))))
        refused = await session.receive()
        assert refused["correlation_id"] == str(participant.CALLS_MAX)
        assert "too many requests" in refused["payload"]["error"]["message"]
        go.set()
        answered = [(await session.receive())["payload"]["result"] for _ in range(participant.CALLS_MAX)]
        assert all(one["content"][0]["text"] == "done" for one in answered)
        await session.text(json.dumps(call("again")))
        assert "result" in (await session.receive())["payload"]


async def test_more_proposals_than_are_reviewed_at_one_time(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participant, "REVIEWS_MAX", 2)
    async with gateway.joined("mcp/*") as (me, session):
        reviewed: list[str] = []
        go, all_here = anyio.Event(), me.events()

        @me.on_proposal
        async def review(proposal: portmoot.IncomingProposal) -> None:
            reviewed.append(proposal.id)
            await go.wait()

        for number in range(3):
            await session.text(json.dumps(call(f"p{number}", "mcp/proposal:tools/call:wait")))
        seen = [event async for event in until_proposed(all_here, 3)]
        assert len(seen) == 3 and sorted(reviewed) == ["p0", "p1"]
        go.set()


async def until_proposed(received: Events, count: int) -> Any:
    async for event in received:
        if isinstance(event, events.Proposed):
            yield event
            count -= 1
            if not count:
                await anyio.wait_all_tasks_blocked()
                return


async def test_what_is_pending_is_bounded() -> None:
    pending = PendingCalls()
    for number in range(PENDING_MAX - 1):
        pending.add_request(str(number), PendingRequest(("a",), "k", "1", Slot()))
    pending.add_proposal("p", PendingProposal((), "k", Updates()))
    with pytest.raises(errors.Busy):
        pending.add_request("one more", PendingRequest(("a",), "k", "1", Slot()))
    pending.remove("p")
    pending.add_proposal("q", PendingProposal((), "k", Updates()))


async def test_envelopes_that_wait_to_be_written_are_bounded(gateway: Gateway) -> None:
    async with gateway.joined("chat") as (me, session):
        assert me._connection is not None
        # Nothing is written before this task waits.
        for number in range(_connection.SEND_QUEUE_MAX):
            me._send(None, "chat", (), None, json.dumps({"text": str(number)}))
        with pytest.raises(errors.Busy):
            me._send(None, "chat", (), None, '{"text":"one more"}')
        for number in range(_connection.SEND_QUEUE_MAX):
            assert (await session.receive())["payload"]["text"] == str(number)


@pytest.mark.parametrize("more", [0, 1])
async def test_a_message_at_its_limit_is_read(gateway: Gateway, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    monkeypatch.setattr(_connection, "FRAME_BYTES_MAX", 4096)
    async with gateway.joined("chat") as (me, session):
        received = me.events()
        await received.next()
        frame = json.dumps({**call("c", "chat"), "payload": {"text": "x"}})
        await session.text(frame[:-4] + "x" * (4096 + more - len(frame)) + frame[-4:])
        event = await received.next()
        if more:
            assert isinstance(event, events.Disconnected) and "4097" in str(event.why), event
        else:
            assert isinstance(event, events.Chat)


@pytest.mark.parametrize("more", [0, 1])
async def test_nesting_at_its_limit_is_read(gateway: Gateway, more: int) -> None:
    async with gateway.joined("chat") as (me, session):
        received = me.events()
        await received.next()
        depth = DEPTH_MAX + more - 2
        deep = json.dumps(call("deep", "acme/x", payload={"quoted": '"[[[{'})).replace('"quoted"', '"x":' + "[" * depth + "]" * depth + ',"q"')
        await session.text(deep)
        await session.text(json.dumps(call("flat", "acme/x")))
        event = await received.next()
        assert isinstance(event, events.Other) and event.envelope.id == ("flat" if more else "deep")


async def test_a_silent_gateway_is_pinged_and_then_given_up(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_connection, "SILENCE_S", 0.05)
    async with gateway.joined("chat") as (me, _):
        received = me.events()
        assert isinstance(await received.next(), events.Welcomed)
        lost = await received.next()
        assert isinstance(lost, events.Disconnected) and "silent" in str(lost.why)


async def test_large_events_are_bounded_by_their_size() -> None:
    queue = Events()
    for id, size in [("1", EVENTS_SIZE_MAX), ("2", 12), ("3", EVENTS_SIZE_MAX)]:
        queue._push(events.Violation("a", id, "x" * size))
    queue._end()
    assert await queue.next() == events.Lagged(2)
    last = await queue.next()
    assert isinstance(last, events.Violation) and last.envelope_id == "3"


def test_the_memory_of_others_is_bounded() -> None:
    protocol = Protocol(is_filtered=False, id_prefix="x", cursor=None)

    def receive(**members: Any) -> Any:
        return protocol.receive(Envelope.read(json.dumps(call("1", **members))))

    for number in range(RECENT_ENVELOPES_MAX + 1):
        assert receive(id=str(number), kind="acme/x")
    assert receive(id="1", kind="acme/x") == [] and receive(id="0", kind="acme/x")
    for number in range(RECENT_PROPOSALS_MAX + 1):
        receive(id=f"p{number}", kind="mcp/proposal:tools/call:wait")
    assert "p0" not in protocol._proposers and len(protocol._proposers) == RECENT_PROPOSALS_MAX
    for number in range(VIOLATORS_MAX + 1):
        receive(**{"from": f"a{number}", "kind": "mcp/request:tools/call:other"}, to=["me", "x"], payload={}, id=f"v{number}")
    assert protocol.violations == {}
    for number in range(VIOLATORS_MAX + 1):
        receive(**{"from": f"b{number}"}, kind="chat", payload={}, id=f"w{number}")
    assert len(protocol.violations) == VIOLATORS_MAX


def test_waits_double_up_to_a_limit_and_vary(monkeypatch: pytest.MonkeyPatch) -> None:
    for share in (0.0, 1.0):
        monkeypatch.setattr("random.random", lambda share=share: share)
        backoff = _connection.Backoff()
        whole = [0.25, 0.5, 1, 2, 4, 8, 16, 30, 30]
        assert [backoff.next() for _ in whole] == [one / 2 + share * one / 2 for one in whole]
        backoff.reset()
        assert backoff.next() <= 0.25
