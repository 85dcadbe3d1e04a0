"""An agent, a reviewer and a worker that go on through the deaths of their gateway; at the end of its input a report of all.

Tokens: ``AGENT``, ``BOSS``, ``WORKER``. Prints ``here`` when the reviewer is in the topic (again), and ``decided N`` after each decision. Every proposal and every direct call has a number
of its own, which the worker counts.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from typing import Any

import anyio

import portmoot
from portmoot import events

PENDING_MAX = 8

server = portmoot.Server("worker")
ran: Counter[str] = Counter()
proposed: dict[str, str] = {}
confirmed: set[str] = set()
outcomes: dict[str, str] = {}
calls: dict[str, str] = {}
decided = 0


@server.tool
async def work(number: str) -> str:
    ran[number] += 1
    # Long enough for a kill to fall between a call and its answer.
    await anyio.sleep(0.003)
    return number


async def watch(agent: portmoot.Participant) -> None:
    async for event in agent.events():
        if isinstance(event, events.ProposalChanged) and event.to == agent.id and event.state == "pending":
            confirmed.add(event.proposal)


async def report_returns(boss: portmoot.Participant) -> None:
    async for event in boss.events():
        if isinstance(event, events.Welcomed):
            print("here", flush=True)


async def settle(proposal: portmoot.Proposal, limit: anyio.CapacityLimiter, number: str) -> None:
    try:
        answer = portmoot.ToolResult.read(await proposal.outcome(6))
        outcomes[proposal.id] = "done" if answer.text == number else f"another answer: {answer.text}"
    except portmoot.Ended as why:
        outcomes[proposal.id] = f"{why.state}: {why.reason}"
    except portmoot.CallError as why:
        outcomes[proposal.id] = type(why).__name__
    finally:
        limit.release_on_behalf_of(proposal)


async def propose(agent: portmoot.Participant, stop: anyio.Event) -> None:
    limit = anyio.CapacityLimiter(PENDING_MAX)
    async with anyio.create_task_group() as tasks:
        number = 0
        while not stop.is_set():
            number += 1
            try:
                proposal = await agent.propose_tool("worker", "work", {"number": f"p{number}"})
            except portmoot.CallError:
                await anyio.sleep(0.01)
                continue
            proposed[proposal.id] = f"p{number}"
            await limit.acquire_on_behalf_of(proposal)
            tasks.start_soon(settle, proposal, limit, f"p{number}")
            await anyio.sleep(0.02)


async def call(boss: portmoot.Participant, stop: anyio.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        try:
            answer = await boss.call_tool("worker", "work", {"number": f"c{number}"}, timeout=3)
            calls[f"c{number}"] = "done" if answer.text == f"c{number}" else answer.text
        except portmoot.CallError as why:
            calls[f"c{number}"] = type(why).__name__
        await anyio.sleep(0.01)


def count() -> None:
    global decided
    decided += 1
    print(f"decided {decided}", flush=True)


async def catch_up(boss: portmoot.Participant) -> None:
    """Approves what was proposed while the reviewer was away, or could not be decided at first."""
    while True:
        await anyio.sleep(0.3)
        try:
            for waiting in await boss.waiting():
                if waiting.may_decide and "worker" in boss.others:
                    await waiting.approve()
                    count()
        except portmoot.CallError:
            continue


async def main() -> None:
    stop = anyio.Event()
    url = os.environ["PORTMOOT_URL"]
    async with (
        portmoot.connect(url, token=os.environ["WORKER"], serve=server, mode="directed"),
        portmoot.connect(url, token=os.environ["BOSS"], mode="directed+proposals") as boss,
        portmoot.connect(url, token=os.environ["AGENT"], mode="directed") as agent,
        anyio.create_task_group() as tasks,
    ):

        @boss.on_proposal
        async def review(proposal: portmoot.IncomingProposal) -> None:
            try:
                if int(str(proposal.arguments["number"])[1:]) % 2:
                    await proposal.fulfil()
                else:
                    await proposal.approve()
                count()
            except portmoot.CallError:
                pass

        tasks.start_soon(watch, agent)
        tasks.start_soon(report_returns, boss)
        tasks.start_soon(catch_up, boss)
        async with anyio.create_task_group() as load:
            load.start_soon(propose, agent, stop)
            load.start_soon(call, boss, stop)
            async for _ in anyio.wrap_file(sys.stdin):
                pass
            stop.set()
        with anyio.fail_after(30):
            while any(one.state in ("pending", "running") for one in await boss.waiting()):
                await anyio.sleep(0.1)
        tasks.cancel_scope.cancel()
    report: dict[str, Any] = {
        "proposed": proposed,
        "confirmed": sorted(confirmed),
        "outcomes": outcomes,
        "calls": calls,
        "ran": ran,
    }
    print(json.dumps(report), flush=True)


anyio.run(main, backend=sys.argv[1])
