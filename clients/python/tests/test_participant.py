"""A participant against a scripted gateway, under asyncio and trio: what it sends, accepts, refuses and survives."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from conftest import Gateway, Session

import portmoot
from portmoot import errors, events
from portmoot.participant import _noted

pytestmark = pytest.mark.anyio

CALL = "mcp/request:tools/call:echo"


def result(asked: dict[str, Any], value: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked["payload"]["id"], "result": value}


async def next_of(received: portmoot.Events, kind: type[Any]) -> Any:
    async for event in received:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"the end, but no {kind}")


async def test_it_learns_its_id_and_the_roster(gateway: Gateway) -> None:
    async with gateway.joined("chat", topic="a b", mode="directed+proposals") as (me, session):
        assert session.path == "/ws?topic=a%20b&mode=directed%2Bproposals&echo=false"
        assert session.token == "Bearer secret"
        assert (me.id, me.you.capabilities, list(me.others)) == ("me", ("chat",), ["portmoot"])
        received = me.events()
        assert isinstance(await received.next(), events.Welcomed)
        ann = {"id": "ann", "capabilities": ["chat"]}
        for event, expect in [("join", events.Joined), ("join", events.Changed), ("leave", events.Left)]:
            payload = {"event": event, "participant": ann}
            await session.say("system/presence", payload, sender="system:gateway")
            assert isinstance(await received.next(), expect)
        assert list(me.others) == ["portmoot"]


async def test_chat_is_sent_and_received(gateway: Gateway) -> None:
    async with gateway.joined("chat") as (me, session):
        id = await me.chat("hi", to=["ann"], format="markdown")
        sent = await session.receive()
        assert (sent["id"], sent["from"], sent["to"], sent["kind"]) == (id, "me", ["ann"], "chat")
        assert sent["payload"] == {"text": "hi", "format": "markdown"}
        received = me.events()
        await session.say("chat", {"text": "ho"}, sender="ann")
        said = await next_of(received, events.Chat)
        assert (said.sender, said.text, said.format) == ("ann", "ho", "plain")
        await session.say("chat", {"text": 1}, sender="ann")
        assert (await next_of(received, events.Violation)).sender == "ann"
        assert me.violations == {"ann": 1}


@pytest.mark.parametrize(
    ("capabilities", "expect"),
    [(["mcp/*"], "request"), (["mcp/proposal:*"], "proposal"), (["chat"], None)],
)
async def test_a_call_is_made_as_the_welcome_allows(gateway: Gateway, capabilities: list[str], expect: str | None) -> None:
    async with gateway.joined(*capabilities) as (me, _):
        params = {"name": "echo"}
        assert me.call_mode("worker", "tools/call", params) == expect
        if expect is None:
            with pytest.raises(portmoot.NotAllowed):
                await me.call_tool("worker", "echo")


async def test_only_an_addressee_may_answer(gateway: Gateway) -> None:
    async with gateway.joined("mcp/*") as (me, session), anyio.create_task_group() as tasks:
        received = me.events()

        async def answer() -> None:
            asked = await session.receive()
            assert asked["kind"] == CALL and asked["payload"]["params"]["arguments"] == {"text": "hi"}
            good = result(asked, {"content": [{"type": "text", "text": "hi"}]})
            kind = "mcp/response:tools/call:echo"
            about: dict[str, Any] = {"correlation_id": asked["id"], "to": ["me"]}
            await session.say(kind, good, sender="mallory", **about)
            await session.say(kind, {**good, "id": 999}, sender="worker", **about)
            await session.say(kind, good, sender="worker", **{**about, "to": ["ann"]})
            await session.say("mcp/response:tools/call:wipe", good, sender="worker", **about)
            await session.say(kind, {**good, "error": {}}, sender="worker", **about)
            await session.say(kind, good, sender="worker", **about)

        tasks.start_soon(answer)
        found = await me.call_tool("worker", "echo", {"text": "hi"})
        assert found.text == "hi" and not found.is_error
        assert me.violations == {"mallory": 1, "worker": 4}
        assert (await next_of(received, events.Violation)).why == "it answers a request to others"


async def test_failures_have_their_exceptions(gateway: Gateway) -> None:
    async with gateway.joined("mcp/*", request_timeout=0.2) as (me, session), anyio.create_task_group() as tasks:

        async def answer() -> None:
            asked = await session.receive()
            payload = {**result(asked, {}), "error": {"code": -5, "message": "no", "data": [1]}}
            del payload["result"]
            await session.say("mcp/response:ping", payload, sender="worker", correlation_id=asked["id"])
            asked = await session.receive()
            refusal = {"error": "capability_violation", "message": "You lack it", "attempted_kind": "mcp/request:ping"}
            await session.say("system/error", refusal, sender="system:gateway", correlation_id=asked["id"])

        tasks.start_soon(answer)
        with pytest.raises(portmoot.Answered) as answered:
            await me.request("worker", "ping")
        assert (answered.value.code, answered.value.message, answered.value.data) == (-5, "no", [1])
        with pytest.raises(portmoot.Refused) as refused:
            await me.request("worker", "ping")
        assert refused.value.code == "capability_violation"
        with pytest.raises(portmoot.CallTimeout):
            await me.request("worker", "ping")
        for bad in ({"x": float("nan")}, {"x": "\ud800"}, {"x": object()}):
            with pytest.raises(errors.InvalidEnvelope):
                await me.request("worker", "ping", bad)
        for kind, to in [("system/x", ["a"]), ("mcp/request", []), ("chat", ["x" * 129]), ("mcp/response:ping", [])]:
            with pytest.raises(errors.InvalidEnvelope):
                await me.send(kind, {}, to=to)
        assert not me._protocol.pending.requests


async def ask(session: Session, id: str, arguments: object, **members: Any) -> dict[str, Any]:
    params = {"name": "echo", "arguments": arguments}
    payload = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    await session.say(CALL, payload, **{"id": id, "sender": "ann", "to": ["me"], **members})
    return await session.receive()


async def test_requests_are_answered_once_and_only_by_their_addressee(gateway: Gateway) -> None:
    server = portmoot.Server("me")
    ran: list[str] = []

    @server.tool
    async def echo(text: str, request: portmoot.IncomingRequest) -> str:
        ran.append(f"{text} {request.caller} {request.fulfils and request.fulfils.proposer}")
        if text == "crash":
            raise RuntimeError("secret")
        return text

    async with gateway.joined("mcp/response:*", serve=server) as (me, session):
        answer = await ask(session, "1", {"text": "a"})
        assert (answer["kind"], answer["to"], answer["correlation_id"]) == ("mcp/response:tools/call:echo", ["ann"], "1")
        assert answer["payload"] == {"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "a"}]}}
        payload = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}
        # The same envelope again; one for another participant; one without an addressee; a proposal.
        await session.say(CALL, payload, id="1", sender="ann", to=["me"])
        await session.say(CALL, payload, id="2", sender="ann", to=["bob"])
        await session.say(CALL, payload, id="3", sender="ann")
        await session.say("mcp/proposal:tools/call:echo", payload, id="p1", sender="scout", to=["me"])
        # A fulfilment is answered to the proposer too.
        answer = await ask(session, "4", {"text": "b"}, correlation_id="p1")
        assert answer["to"] == ["ann", "scout"]
        answer = await ask(session, "5", {"text": "crash"})
        assert answer["payload"]["error"] == {"code": -32603, "message": "the tool failed"}
        # Its kind says another tool than its payload.
        await session.say("mcp/request:tools/call:safe", payload, id="6", sender="ann", to=["me"])
        assert (await session.receive())["payload"]["error"]["code"] == -32600
        assert ran == ["a ann None", "b ann scout", "crash ann None"]
        assert me.violations == {"ann": 1}


async def test_a_proposal_ends_by_the_approved_fulfilment(gateway: Gateway) -> None:
    async with gateway.joined("mcp/proposal:*", others=("portmoot", "worker", "boss")) as (me, session):
        proposal = await me.propose_tool("worker", "echo", {"text": "hi"})
        sent = await session.receive()
        assert (sent["kind"], sent["id"]) == ("mcp/proposal:tools/call:echo", proposal.id)
        assert "correlation_id" not in sent and set(sent["payload"]) == {"method", "params"}
        call = {"jsonrpc": "2.0", "id": 1, **sent["payload"]}
        about: dict[str, Any] = {"sender": "boss", "to": ["worker"], "correlation_id": proposal.id}
        for id in ("f1", "f2"):
            await session.say(CALL, call, id=id, **{**about, "sender": "eve" if id == "f1" else "boss"})
        for id, said in [("f1", "not approved"), ("f2", "hi")]:
            payload = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": said}]}}
            await session.say("mcp/response:tools/call:echo", payload, sender="worker", to=["boss"], correlation_id=id)
        state = {"proposal": proposal.id, "state": "running", "by": "boss"}
        await session.say("portmoot/proposal", state, to=["me"])
        assert portmoot.ToolResult.read(await proposal.outcome(5)).text == "hi"


@pytest.mark.parametrize("mode", ["all", "directed", "directed+proposals"])
@pytest.mark.parametrize("is_early", [False, True])
async def test_each_of_two_proposals_of_one_tool_gets_its_own_answer(gateway: Gateway, mode: Any, is_early: bool) -> None:
    others = ("portmoot", "worker", "boss")
    async with gateway.joined("mcp/proposal:*", others=others, mode=mode) as (me, session):
        proposals = [await me.propose_tool("worker", "echo", {"text": text}) for text in ("a", "b")]
        sent = [await session.receive() for _ in proposals]

        async def report() -> None:
            for envelope in sent:
                state = {"proposal": envelope["id"], "state": "running", "by": "boss", "fulfilment": f"f {envelope['id']}"}
                await session.say("portmoot/proposal", {**state, "edited": True}, to=["me"])

        async def answer() -> None:
            for envelope in reversed(sent):
                text = envelope["payload"]["params"]["arguments"]["text"]
                payload = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}}
                about: Any = {"to": ["boss", "me"], "correlation_id": f"f {envelope['id']}"}
                await session.say("mcp/response:tools/call:echo", payload, sender="worker", **about)

        if mode == "all":
            for envelope in sent:
                call = {"jsonrpc": "2.0", "id": 1, **envelope["payload"]}
                about: Any = {"sender": "boss", "to": ["worker"], "correlation_id": envelope["id"]}
                await session.say(CALL, call, id=f"f {envelope['id']}", **about)
        for step in (answer, report) if is_early else (report, answer):
            await step()
        assert [portmoot.ToolResult.read(await one.outcome(5)).text for one in proposals] == ["a", "b"]


async def test_a_proposal_that_the_gateway_does_not_have_ends_after_the_reconnect(gateway: Gateway) -> None:
    async with gateway.joined("mcp/proposal:*") as (me, session):
        proposal = await me.propose_tool("worker", "echo")
        await session.receive()
        await session.close()
        session = await gateway.session()
        await session.welcome("mcp/proposal:*")
        # It is asked twice: it may be about to be written down.
        for _ in range(2):
            call = await session.receive()
            assert call["payload"]["params"]["name"] == "wait_for_proposal"
            value = {"content": [{"type": "text", "text": "unknown_target: there is no such proposal"}], "isError": True}
            kind = "mcp/response:tools/call:wait_for_proposal"
            await session.say(kind, result(call, value), sender="portmoot", correlation_id=call["id"])
        with pytest.raises(portmoot.errors.NotProposed):
            await proposal.outcome(5)


@pytest.mark.parametrize(("state", "reason"), [("rejected", "not today"), ("expired", None), ("withdrawn", "changed")])
async def test_a_proposal_that_is_not_carried_out_ends(gateway: Gateway, state: str, reason: str | None) -> None:
    async with gateway.joined("mcp/proposal:*") as (me, session):
        proposal = await me.propose_tool("worker", "echo")
        with pytest.raises(portmoot.CallTimeout):
            await proposal.outcome(0.01)
        payload = {"proposal": proposal.id, "state": state, "reason": reason}
        # Only the gateway reports states.
        await session.say("portmoot/proposal", payload, sender="mallory", to=["me"])
        await session.say("portmoot/proposal", payload, to=["me"])
        with pytest.raises(portmoot.Ended) as ended:
            await proposal.outcome(5)
        assert (ended.value.state, ended.value.reason) == (state, reason)
        assert me.violations == {"mallory": 1}


async def test_reviewers_see_proposals_and_fulfil_them_as_written(gateway: Gateway) -> None:
    async with gateway.joined("mcp/*") as (me, session):
        reviewed: list[str | None] = []
        done = anyio.Event()

        @me.on_proposal
        async def review(proposal: portmoot.IncomingProposal) -> None:
            reviewed.append(proposal.tool)
            if proposal.tool == "bad":
                raise RuntimeError("a fault of the reviewer")
            await proposal.fulfil()
            done.set()

        for id, tool, arguments in [("p0", "bad", "{}"), ("p1", "echo", '{"n":1e400,"t":"\\u00e9"}')]:
            params = f'{{"name":"{tool}","arguments":{arguments}}}'
            await session.text(
                f'{{"protocol":"mcpx/v0.1","id":"{id}","from":"scout","to":["worker"],'
                f'"kind":"mcp/proposal:tools/call:{tool}","payload":{{"method":"tools/call","params":{params}}}}}'
            )
        asked = await session.receive()
        assert (asked["kind"], asked["correlation_id"], asked["to"]) == (CALL, "p1", ["worker"])
        assert asked["payload"]["params"]["arguments"] == {"n": float("inf"), "t": "é"}
        await session.say("mcp/response:tools/call:echo", result(asked, {}), sender="worker", correlation_id=asked["id"])
        await done.wait()
        assert sorted(filter(None, reviewed)) == ["bad", "echo"]


async def test_the_gateways_tools_decide_and_list(gateway: Gateway) -> None:
    listed: dict[str, Any] = {"id": "ab", "envelope": "p1", "state": "pending", "by": "scout", "to": ["worker"], "method": "tools/call", "target": "echo"}
    listed |= {"own": False, "may_decide": True, "in_full": True, "params": {"name": "echo"}, "digest": "d" * 64}
    asked: list[tuple[str, dict[str, Any]]] = []

    async def tools(session: Session) -> None:
        while True:
            call = await session.receive()
            name, arguments = call["payload"]["params"]["name"], call["payload"]["params"]["arguments"]
            asked.append((name, arguments))
            page = {"proposals": [listed], "more": True, "next": "ab"}
            if arguments.get("after"):
                page = {"proposals": [{**listed, "id": "cd"}], "more": False}
            data = page if name == "list_proposals" else {"id": "ab", "state": "running", "said": "ok"}
            value: dict[str, Any] = {"content": [{"type": "text", "text": "x"}], "structuredContent": data}
            if arguments.get("reason") == "late":
                value = {"content": [{"type": "text", "text": "conflict: decided already"}], "isError": True}
            kind = f"mcp/response:tools/call:{name}"
            await session.say(kind, result(call, value), sender="portmoot", correlation_id=call["id"])

    async with gateway.joined("mcp/*") as (me, session), anyio.create_task_group() as tasks:
        tasks.start_soon(tools, session)
        first, second = await me.waiting()
        assert (first.id, second.id, first.sender, first.may_decide) == ("ab", "cd", "scout", True)
        assert first.envelope == "p1"
        assert await first.approve({"text": "other"}) == "running"
        assert asked[-1] == ("approve_proposal", {"id": "ab", "digest": "d" * 64, "arguments": {"text": "other"}})
        await first.claim()
        assert asked[-1] == ("claim_proposal", {"id": "ab"})
        await first.extend()
        assert asked[-1] == ("extend_proposal", {"id": "ab"})
        await first.amend({"text": "other"})
        assert asked[-1] == ("amend_proposal", {"id": "ab", "arguments": {"text": "other"}})
        await first.approve(note="only today")
        assert asked[-1] == ("approve_proposal", {"id": "ab", "digest": "d" * 64, "note": "only today"})
        await second.reject("no")
        await me.withdraw("mine", "why")
        assert asked[-2:] == [
            ("reject_proposal", {"proposal": "cd", "reason": "no"}),
            ("withdraw_proposal", {"proposal": "mine", "reason": "why"}),
        ]
        with pytest.raises(errors.ToolFailed, match="decided already"):
            await me.withdraw("mine", "late")
        tasks.cancel_scope.cancel()


async def test_it_reconnects_and_receives_what_it_missed_once(gateway: Gateway) -> None:
    def chat(id: str, sender: str = "ann") -> dict[str, Any]:
        return {"protocol": "mcpx/v0.1", "id": id, "from": sender, "kind": "chat", "payload": {"text": id}}

    server = portmoot.Server("me")

    @server.tool
    def echo() -> None:
        raise AssertionError("a request from before the connection is not run")

    first = {"epoch": 7, "offset": 2, "complete": True, "envelopes": [chat("c1"), chat("c2")]}
    async with gateway.joined("mcp/*", "chat", history=first, serve=server) as (me, session):
        received = me.events()
        history = await next_of(received, events.History)
        assert [one.text for one in history.past] == ["c1", "c2"] and not history.is_cut
        assert me.cursor == portmoot.Cursor(7, 2)
        own = await me.chat("mine")
        await session.say("chat", {"text": "c3"}, id="c3", sender="ann")
        await next_of(received, events.Chat)
        failed: list[Exception] = []

        async def call() -> None:
            try:
                await me.request("worker", "ping")
            except portmoot.CallError as why:
                failed.append(why)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await session.receive()
            await session.receive()
            await session.drop()
            again = await gateway.session()
            assert again.path.endswith("&epoch=7&offset=2")
            payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
            request = {**chat("r1"), "kind": CALL, "to": ["me"], "payload": payload}
            missed = [chat(own, "me"), chat("c3"), request, chat("c4")]
            with pytest.raises(errors.NotConnected):
                await me.chat("too early")
            await again.welcome("mcp/*", "chat", history={"epoch": 7, "offset": 9, "complete": False, "envelopes": missed})
            history = await next_of(received, events.History)
        assert isinstance(failed[0], portmoot.Lost)
        assert history.is_cut and [type(one) for one in history.past] == [events.Other, events.Chat]
        await me.chat("back")
        assert (await again.receive())["payload"]["text"] == "back"


async def test_another_process_begins_where_an_earlier_one_connected(gateway: Gateway) -> None:
    history = {"epoch": 7, "offset": 9, "complete": False, "envelopes": []}
    async with gateway.joined("chat", since=portmoot.Cursor(7, 5), history=history) as (me, session):
        assert session.path.endswith("&epoch=7&offset=5")
        assert (await next_of(me.events(), events.History)).is_cut
        assert me.cursor == portmoot.Cursor(7, 9)


async def test_a_pending_proposal_survives_a_reconnect(gateway: Gateway) -> None:
    async with gateway.joined("mcp/proposal:*", others=("portmoot", "worker")) as (me, session):
        proposal = await me.propose_tool("worker", "echo")
        await session.receive()
        await session.close(1001)
        again = await gateway.session()
        await again.welcome("mcp/proposal:*", others=())
        await again.say("portmoot/proposal", {"proposal": proposal.id, "state": "failed", "reason": "outcome_unknown"}, to=["me"])
        with pytest.raises(portmoot.Ended, match="outcome_unknown"):
            await proposal.outcome(10)


WAIT = "mcp/request:tools/call:wait_for_proposal"


async def asked_about(session: Session, proposal: str, data: object, *, wait: bool = False) -> None:
    """Receives the question about a proposal, and answers it with this result, or with this error."""
    asked = await session.receive()
    arguments = {"proposal": proposal, **({} if wait else {"wait": False})}
    assert (asked["kind"], asked["to"], asked["payload"]["params"]["arguments"]) == (WAIT, ["portmoot"], arguments)
    said = result(asked, data)
    if isinstance(data, dict) and "code" in data:
        said = {"jsonrpc": "2.0", "id": asked["payload"]["id"], "error": data}
    await session.say(WAIT.replace("request", "response"), said, to=["me"], correlation_id=asked["id"])


def report(**state: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": "in words"}], "structuredContent": state, "isError": False}


@pytest.mark.parametrize(
    ("method", "state", "answer", "expect"),
    [
        ("tools/call", {"state": "rejected", "by": "boss", "reason": "no"}, None, ("rejected", "no")),
        ("tools/call", {"state": "expired"}, None, ("expired", None)),
        ("tools/call", {"state": "failed", "by": "boss", "reason": "outcome_unknown"}, None, ("failed", "outcome_unknown")),
        ("tools/call", {"state": "completed"}, {"content": [{"type": "text", "text": "done"}]}, "done"),
        ("tools/call", {"state": "completed"}, {"code": -32602, "message": "bad"}, (-32602, "bad")),
        ("prompts/get", {"state": "completed"}, {"content": [{"type": "text", "text": '{"messages":[]}'}]}, '{"messages":[]}'),
        (
            "prompts/get",
            {"state": "failed"},
            {"content": [{"type": "text", "text": '{"code":1,"message":"m"}'}], "isError": True},
            (1, "m"),
        ),
    ],
)
async def test_what_was_decided_while_it_was_away_is_asked_for(
    gateway: Gateway, method: str, state: dict[str, object], answer: dict[str, Any] | None, expect: object
) -> None:
    async with gateway.joined("mcp/proposal:*", others=("portmoot", "worker")) as (me, session):
        proposal = await me.propose("worker", method, {"name": "echo"})
        await session.receive()
        await session.drop()
        again = await gateway.session()
        # The topic keeps no history.
        await again.welcome("mcp/proposal:*")
        await asked_about(again, proposal.id, report(answered=answer is not None, **state))
        if answer is not None:
            await asked_about(again, proposal.id, answer, wait=True)
        try:
            ended: object = await proposal.outcome(10)
        except portmoot.Ended as end:
            assert (end.state, end.reason) == expect
        except portmoot.Answered as error:
            assert (error.code, error.message) == expect
        else:
            assert ended == answer if method == "tools/call" else json.loads(str(expect)) == ended


async def test_a_proposal_that_still_waits_is_asked_about_at_each_return(gateway: Gateway) -> None:
    async with gateway.joined("mcp/proposal:*", others=("portmoot", "worker")) as (me, session):
        dropped = (await me.propose_tool("worker", "echo")).id
        proposal = await me.propose_tool("worker", "echo")
        for _ in range(2):
            await session.receive()
        await session.drop()
        again = await gateway.session()
        await again.welcome("mcp/proposal:*")
        # The first was dropped by its program, and is of no interest.
        assert dropped not in me._protocol.pending.proposals
        await again.receive()
        await again.drop()
        third = await gateway.session()
        await third.welcome("mcp/proposal:*")
        await asked_about(third, proposal.id, report(state="pending", answered=False))
        with pytest.raises(portmoot.CallTimeout):
            await proposal.outcome(0.05)
        # From now on it hears of it.
        await third.say("portmoot/proposal", {"proposal": proposal.id, "state": "rejected"}, to=["me"])
        with pytest.raises(portmoot.Ended):
            await proposal.outcome(5)
        await me.chat("no question is left")
        assert (await third.receive())["kind"] == "chat"


@pytest.mark.parametrize(
    ("status", "expect"),
    [(401, errors.Unauthenticated), (403, errors.Forbidden), (503, errors.BadStatus)],
)
async def test_refused_connections_report_the_reason(gateway: Gateway, status: int, expect: type[Exception]) -> None:
    gateway.refuse = (status, "because of this")
    with pytest.raises(expect, match="because of this"):
        async with portmoot.connect(gateway.url):
            pass


async def test_unreachable_gateways_and_bad_urls(gateway: Gateway) -> None:
    for url, expect in [
        ("http://127.0.0.1:1", errors.Unreachable),
        ("ftp://x", errors.BadUrl),
        ("127.0.0.1:7070", errors.BadUrl),
        ("http://a:b@x", errors.BadUrl),
        ("http://x/ws?topic=y", errors.BadUrl),
        ("http://x:99999", errors.BadUrl),
    ]:
        with pytest.raises(expect):
            async with portmoot.connect(url):
                pass
    with pytest.raises(errors.ConnectionBroken, match="no welcome in time"):
        async with portmoot.connect(gateway.url, connect_timeout=0.1):
            pass


async def test_a_replaced_participant_does_not_return(gateway: Gateway) -> None:
    async with gateway.joined("chat") as (me, session):
        received = me.events()
        await session.close(4001)
        lost = await next_of(received, events.Disconnected)
        assert lost.is_final and isinstance(lost.why, errors.Replaced)
        assert await received.next() is None
        with pytest.raises(errors.NotConnected):
            await me.chat("hm")
        with pytest.raises(errors.Replaced):
            await me.connected()


async def test_exceptions_of_the_program_pass_unchanged(gateway: Gateway) -> None:
    async def welcome() -> None:
        session = await gateway.session()
        await session.welcome("chat")
        assert (await session.receive())["payload"]["text"] == "one"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(welcome)
        # No group of exceptions: the tasks of the participant never raise.
        with pytest.raises(KeyError, match="mine"):
            async with portmoot.connect(gateway.url) as me:
                await me.chat("one")
                raise KeyError("mine")
        with pytest.raises(errors.NotConnected):
            await me.chat("two")


async def test_a_slow_subscriber_loses_the_oldest_events_and_learns_how_many(gateway: Gateway) -> None:
    from portmoot._queue import EVENTS_MAX, Events

    queue = Events()
    for number in range(EVENTS_MAX + 2):
        queue._push(events.Violation("a", str(number), ""))
    queue._end()
    assert await queue.next() == events.Lagged(2)
    assert [event.envelope_id async for event in queue if isinstance(event, events.Violation)][0] == "2"


@pytest.mark.parametrize(
    ("params", "expect"),
    [
        (None, '{"_meta":{"portmoot/note":"\u00e9"}}'),
        ('{ "name": "pay", "arguments": {"a": 1.0} }', '{"name":"pay","arguments":{"a": 1.0},"_meta":{"portmoot/note":"\u00e9"}}'),
        (
            '{"_meta": {"portmoot/note": "old", "x": 1e2}, "name": "pay"}',
            '{"_meta":{"portmoot/note":"\u00e9","x":1e2},"name":"pay"}',
        ),
    ],
)
def test_a_note_changes_nothing_else_of_the_params(params: str | None, expect: str) -> None:
    assert _noted(params, "\u00e9") == expect


@pytest.mark.parametrize("params", ["[]", '{"_meta":1}', '{"a":1,"a":2}'])
def test_params_that_can_have_no_note_are_not_sent(params: str) -> None:
    with pytest.raises(errors.InvalidEnvelope):
        _noted(params, "x")


async def test_who_asks_for_places_reads_them(gateway: Gateway) -> None:
    placed = {"portmoot/place": {"epoch": 7, "offset": 12, "received": "2026-11-28T20:00:00.000Z"}}
    for asks in (True, False):
        async with gateway.joined("chat", places=asks) as (me, session):
            assert session.path.endswith("&places=true") is asks
            received = me.events()
            await session.say("chat", {"text": "a"}, sender="ann", **placed)
            await session.say("chat", {"text": "b"}, sender="ann")
            first, second = await next_of(received, events.Chat), await next_of(received, events.Chat)
            # Who does not ask takes none for the gateway's.
            expect = portmoot.Place(7, 12, "2026-11-28T20:00:00.000Z") if asks else None
            assert (me.place(first.envelope), me.place(second.envelope)) == (expect, None)


async def test_claims_and_notes_come_with_the_state(gateway: Gateway) -> None:
    async with gateway.joined("mcp/*") as (me, session):
        received = me.events()
        said = {"by": "ann", "since": "2026-11-28T20:00:00Z"}
        payload = {"proposal": "p1", "state": "pending", "claims": [said, 7], "notes": [{"by": "ann", "note": "ok"}]}
        await session.say("portmoot/proposal", payload, to=["scout"])
        changed = await next_of(received, events.ProposalChanged)
        assert changed.claims == (events.Claim("ann", "2026-11-28T20:00:00Z"),)
        assert changed.notes == (events.Note("ann", "ok"),)
