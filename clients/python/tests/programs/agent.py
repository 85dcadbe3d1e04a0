"""A participant that is driven by JSON lines: ``agent.py asyncio|trio MODE``. It prints answers and events as JSON lines.

``{"do": NAME, "n": NUMBER, ...}`` runs an operation below; its answer has the same ``n``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
from anyio.abc import TaskGroup

import portmoot
from portmoot import events


def say(**members: Any) -> None:
    print(json.dumps(members), flush=True)


def shown(event: events.Event) -> dict[str, Any] | None:
    if isinstance(event, events.Chat):
        return {"event": "chat", "from": event.sender, "text": event.text}
    if isinstance(event, events.History):
        past = [one for one in map(shown, event.past) if one is not None]
        return {"event": "history", "past": past, "is_cut": event.is_cut}
    if isinstance(event, events.Violation):
        return {"event": "violation", "from": event.sender, "why": event.why}
    if isinstance(event, events.Disconnected):
        return {"event": "disconnected", "is_final": event.is_final}
    if isinstance(event, events.Welcomed):
        return {"event": "welcomed", "id": event.you.id, "others": [one.id for one in event.others]}
    if isinstance(event, events.Proposed):
        return {"event": "proposed", "id": event.id, "from": event.sender, "tool": event.call.target}
    if isinstance(event, events.ProposalChanged):
        return {"event": "state", "proposal": event.proposal, "state": event.state}
    return None


class Agent:
    def __init__(self, me: portmoot.Participant) -> None:
        self.me = me
        self.proposals: dict[str, portmoot.Proposal] = {}
        self.incoming: dict[str, portmoot.IncomingProposal] = {}

    async def chat(self, text: str) -> Any:
        return await self.me.chat(text)

    async def call(self, to: str, tool: str, arguments: dict[str, Any]) -> Any:
        return (await self.me.call_tool(to, tool, arguments)).text

    async def request(self, to: str, method: str, params: dict[str, Any]) -> Any:
        return await self.me.request(to, method, params)

    async def propose(self, to: str, tool: str, arguments: dict[str, Any]) -> Any:
        proposal = await self.me.propose_tool(to, tool, arguments)
        self.proposals[proposal.id] = proposal
        return proposal.id

    async def outcome(self, id: str) -> Any:
        return portmoot.ToolResult.read(await self.proposals[id].outcome(20)).text

    async def withdraw(self, id: str) -> Any:
        await self.proposals[id].withdraw("not needed any more")

    async def waiting(self) -> Any:
        return [[one.id, one.sender, one.target, one.params] for one in await self.me.waiting()]

    async def approve_waiting(self) -> Any:
        return [await one.approve() for one in await self.me.waiting() if one.may_decide]

    async def like(self, when: str) -> Any:
        [one] = [one for one in await self.me.waiting() if one.may_decide]
        rule = await one.like(uses=3, when=when)
        return [rule.sentence, await self.me.add_rule(rule)]

    async def fulfil(self, id: str) -> Any:
        return portmoot.ToolResult.read(await self.incoming[id].fulfil()).text

    async def approve(self, id: str, arguments: dict[str, Any] | None = None) -> Any:
        return await self.incoming[id].approve(arguments)

    async def reject(self, id: str, reason: str) -> Any:
        await self.incoming[id].reject(reason)


async def run(agent: Agent, n: int, do: str, arguments: dict[str, Any]) -> None:
    try:
        say(n=n, result=await getattr(agent, do)(**arguments))
    except portmoot.PortmootError as why:
        say(n=n, error=type(why).__name__, why=str(why))


async def watch(agent: Agent) -> None:
    async for event in agent.me.events():
        line = shown(event)
        if line is not None:
            say(**line)


async def main(mode: portmoot.Mode) -> None:
    server = portmoot.Server("agent")

    @server.tool
    async def greet(name: str, request: portmoot.IncomingRequest) -> str:
        return f"hello {name}, says {request.participant.id} to {request.caller}"

    async with portmoot.connect(mode=mode, serve=server) as me, anyio.create_task_group() as tasks:
        agent = Agent(me)

        @me.on_proposal
        async def keep(proposal: portmoot.IncomingProposal) -> None:
            agent.incoming[proposal.id] = proposal

        tasks.start_soon(watch, agent)
        await commands(agent, tasks)
        tasks.cancel_scope.cancel()


async def commands(agent: Agent, tasks: TaskGroup) -> None:
    async for line in anyio.wrap_file(sys.stdin):
        command = json.loads(line)
        n, do = command.pop("n"), command.pop("do")
        tasks.start_soon(run, agent, n, do, command)


mode: portmoot.Mode = "directed+proposals" if sys.argv[2] == "directed+proposals" else "all"
anyio.run(main, mode, backend=sys.argv[1])
