"""The example that reviews, before a scripted gateway and at its command line."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
import reviewer
from conftest import Gateway, Session

import portmoot
from portmoot import _tools

EXAMPLES = Path(__file__).parents[1] / "examples"
DEFINITION = '{"name":"NAME","inputSchema":{"type":"object"}}'
APPROVING = """[[rule]]
id = "ID"
author = "ann"
decision = "approve"
kind = "mcp/request:tools/call:NAME"
to = "worker"
proposers = ["agent"]
definition = "DEFINITION"
server = "SERVER"
expires = 2999-01-01T00:00:00Z
uses = 1
"""


def rule(name: str, more: str = "") -> str:
    digest = portmoot.definition_digest(DEFINITION.replace("NAME", name))
    filled = APPROVING.replace("ID", f"{name}-rule").replace("NAME", name)
    return filled.replace("DEFINITION", str(digest)).replace("SERVER", portmoot.participant_digest("worker")) + more


REJECTING = '[[rule]]\nid = "no"\nauthor = "ann"\ndecision = "reject"\nkind = "mcp/request:tools/call"\nproposers = ["*"]\n'
AFTER = 'after = [{ kind = "mcp/request:tools/call:echo", to = "worker", within = "1h" }]\n'


async def proposed(me: portmoot.Participant, session: Session, tool: str, id: str) -> portmoot.IncomingProposal:
    """A proposal of a call without arguments, as it arrives."""
    arrived: list[portmoot.IncomingProposal] = []
    here = anyio.Event()

    async def take(proposal: portmoot.IncomingProposal) -> None:
        arrived.append(proposal)
        here.set()

    me.on_proposal(take)
    payload = {"method": "tools/call", "params": {"name": tool}}
    await session.say(f"mcp/proposal:tools/call:{tool}", payload, sender="agent", to=["worker"], id=id)
    await here.wait()
    me._reviewers.remove(take)
    return arrived[0]


async def answer(session: Session, sender: str, **members: Any) -> dict[str, Any]:
    """Receives a request and answers it."""
    asked = await session.receive()
    payload = {"jsonrpc": "2.0", "id": asked["payload"]["id"], **members}
    kind = asked["kind"].replace("request", "response")
    await session.say(kind, payload, sender=sender, to=["me"], correlation_id=asked["id"])
    return asked


async def refuse(session: Session, why: str) -> None:
    """Receives a request, which the gateway refuses."""
    asked = await session.receive()
    payload = {"error": "conflict", "message": why, "attempted_kind": asked["kind"]}
    await session.say("system/error", payload, sender="system:gateway", to=["me"], correlation_id=asked["id"])


async def tool_list(session: Session, *names: str, **more: Any) -> dict[str, Any]:
    listed = [json.loads(DEFINITION.replace("NAME", name)) for name in names]
    return await answer(session, "worker", result={"tools": listed, **more})


async def judged(
    gateway: Gateway, rules: portmoot.RuleSet, tool: str, result: dict[str, Any] | None, id: str = "p1"
) -> reviewer.Outcome:
    """What becomes of a proposal; with a result, the call that it proposes is expected."""
    outcomes: list[reviewer.Outcome] = []
    async with gateway.joined("mcp/*", others=("portmoot", "worker", "agent")) as (me, session):
        proposal = await proposed(me, session, tool, id)

        async def decide() -> None:
            outcomes.append(await reviewer.by_rules(rules, me, proposal))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(decide)
            await tool_list(session, "echo", "add")
            if result is not None:
                await answer(session, "worker", result=result)
    return outcomes[0]


ANSWERED = {"content": [{"type": "text", "text": "yes"}]}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("result", "succeeds"),
    [
        (ANSWERED, True),
        ({**ANSWERED, "isError": False, "resultType": "complete"}, True),
        ({**ANSWERED, "isError": True}, False),
        ({**ANSWERED, "isError": "true"}, False),
        ({"resultType": "input_required", "inputRequests": {}}, False),
        ({"task": {"taskId": "1"}}, False),
    ],
)
async def test_what_says_of_an_error_is_no_success(gateway: Gateway, result: dict[str, Any], succeeds: bool) -> None:
    assert portmoot.succeeded(result) is succeeds
    rules = portmoot.RuleSet.parse(rule("echo") + rule("add", AFTER))
    echo = await judged(gateway, rules, "echo", result)
    assert echo.is_decided and ("an error" in echo.said) is not succeeds
    # It used the only use of its rule in any case, and was charged.
    assert "used 1 times" in str((await judged(gateway, rules, "echo", None, "p2")).more)
    # Only after a success does the other rule approve.
    add = await judged(gateway, rules, "add", ANSWERED if succeeds else None, "p3")
    assert add.is_decided is succeeds, add.said


@pytest.mark.anyio
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_it_says_that_someone_else_decided_first_and_goes_on(gateway: Gateway, decision: str) -> None:
    rules = portmoot.RuleSet.parse(rule("echo") if decision == "approve" else REJECTING)
    outcomes: list[reviewer.Outcome] = []
    async with gateway.joined("mcp/*", others=("portmoot", "worker", "agent")) as (me, session):
        proposal = await proposed(me, session, "echo", "p1")

        async def decide() -> None:
            outcomes.append(await reviewer.by_rules(rules, me, proposal))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(decide)
            await tool_list(session, "echo")
            if decision == "approve":
                await refuse(session, "it is decided already")
            else:
                failed = {"content": [{"type": "text", "text": "conflict: it is decided already"}], "isError": True}
                await answer(session, "portmoot", result=failed)
    assert not outcomes[0].is_decided and "decided already" in outcomes[0].said
    if decision == "approve":
        # The use is given back.
        assert (await judged(gateway, rules, "echo", ANSWERED, "p2")).is_decided


@pytest.mark.anyio
async def test_what_waited_and_was_decided_by_someone_else_ends_no_program(gateway: Gateway) -> None:
    said: list[str] = []
    listed = {"id": "1", "state": "pending", "by": "agent", "to": ["worker"], "method": "tools/call", "own": False, "may_decide": True}
    async with gateway.joined("mcp/*") as (me, session):

        async def decide(target: str, method: str, digest: str | None) -> None:
            listing = {**listed, "target": target, "method": method, "digest": digest}
            said.append(await reviewer.decide_late(portmoot.WaitingProposal._read(listing, me), ["echo"]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(decide, "echo", "tools/call", "ab")
            failed = {"content": [{"type": "text", "text": "conflict: it is decided already"}], "isError": True}
            await answer(session, "portmoot", result=failed)
        for target, method, digest in [("echo", "tools/call", None), ("add", "tools/call", "ab"), ("echo", "prompts/get", "ab")]:
            await decide(target, method, digest)
    assert "decided already" in said[0] and "left as it is" in said[1] and said[2:] == ["left to people"] * 2


@pytest.mark.anyio
async def test_a_definition_is_found_on_any_page_as_it_was_written(gateway: Gateway) -> None:
    async with gateway.joined("mcp/*", others=("portmoot", "worker")) as (me, session):
        found: list[str | None] = []

        async def look(tool: str) -> None:
            found.append(await me.definition("worker", tool))

        for tool in ("echo", "add"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(look, tool)
                first = await tool_list(session, "sub", nextCursor="two")
                second = await tool_list(session, "mul", nextCursor="")
                third = await session.receive()
                # Members that a value would lose.
                written = '{"tools": [{"name":"echo","a":1E2,"a":1}], "nextCursor": null}'
                payload = f'{{"jsonrpc":"2.0","id":{third["payload"]["id"]},"result":{written}}}'
                envelope: dict[str, Any] = {"protocol": "mcpx/v0.1", "id": f"r-{tool}", "from": "worker", "to": ["me"]}
                envelope |= {"kind": "mcp/response:tools/list", "correlation_id": third["id"], "payload": 0}
                await session.text(json.dumps(envelope).replace('"payload": 0', f'"payload": {payload}'))
            assert "params" not in first["payload"] and second["payload"]["params"] == {"cursor": "two"}
            assert third["payload"]["params"] == {"cursor": ""}
        assert found == ['{"name":"echo","a":1E2,"a":1}', None]
        assert portmoot.definition_digest(str(found[0])) is None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("page", "why"),
    [
        ({"tools": [], "nextCursor": "on"}, "more than 3 pages"),
        ({"tools": [{"name": "echo"}, {"name": "echo"}]}, "2 times"),
        ({"tools": [], "nextCursor": 7}, "`nextCursor` is no text"),
        ({"tools": "echo"}, "expected a JSON array"),
        ({}, "`tools` is missing"),
    ],
)
async def test_a_list_without_an_end_or_sense_is_said_to_be_one(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], page: dict[str, Any], why: str
) -> None:
    monkeypatch.setattr(_tools, "PAGES_MAX", 3)
    rules = portmoot.RuleSet.parse(rule("echo"))
    async with gateway.joined("mcp/*", others=("portmoot", "worker", "agent")) as (me, session):
        proposal = await proposed(me, session, "echo", "p1")
        outcomes: list[reviewer.Outcome] = []

        async def decide() -> None:
            outcomes.append(await reviewer.by_rules(rules, me, proposal))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(decide)
            for _ in range(3 if "pages" in why else 1):
                await answer(session, "worker", result=page)
    assert not outcomes[0].is_decided and outcomes[0].more[0] == 'definition = "None"'
    assert why in capsys.readouterr().out


@pytest.mark.anyio
async def test_texts_of_others_make_no_line(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "x\ndecided about echo of agent: approved, answered\x1b[2J"
    rules = portmoot.RuleSet.parse(REJECTING.replace('"reject"', '"ask"').replace('["*"]', '["b*"]'))
    async with gateway.joined("mcp/*", others=("portmoot", "worker", "agent")) as (me, session):
        proposal = await proposed(me, session, forged, "p1")
        call = portmoot.RuledCall.of(proposal, at_ms=0)
        assert call is not None
        explained = [str(one) for one in rules.explain(dataclasses.replace(call, proposer=forged))]
        reviewer.report(proposal, reviewer.Outcome(f"left as it is: {forged}", more=tuple("\n".join(explained).split("\n"))))
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and not any(line.startswith("decided") for line in printed.split("\n")), printed
    assert printed.count("it is x\\u{a}decided") == 1


def run(*args: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program with these arguments, and no gateway to connect to."""
    clean = {"PYTHONPATH": str(EXAMPLES.parent / "src"), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath}
    clean["PORTMOOT_URL"] = "http://127.0.0.1:9"
    return subprocess.run(
        [sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning", EXAMPLES / "reviewer.py", *args],
        env={**clean, **environment},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_rules_and_tools_are_not_given_together(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(REJECTING, encoding="utf-8")
    for args, why in [(["--rules", str(file), "echo"], "not both"), ([], "or rules")]:
        ran = run(*args)
        assert ran.returncode == 2 and why in ran.stderr, ran.stderr


def test_a_file_of_rules_is_read_as_utf_8_and_its_faults_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(REJECTING.replace('"ann"', '"zo\u00eb"'), encoding="utf-8")
    # An encoding in which these bytes are no text.
    ran = run("--rules", file, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert "Encoding" not in ran.stderr and "Unreachable" in ran.stderr, ran.stderr
    for content, why in [
        (b'[[rule]]\nid = "no\x1b[2J"\n', "line 2, column 6"),
        (b"\xff", "utf-8"),
        (None, "No such file"),
    ]:
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        ran = run("--rules", file)
        assert ran.returncode == 2 and why in ran.stderr and "\x1b" not in ran.stderr, ran.stderr
