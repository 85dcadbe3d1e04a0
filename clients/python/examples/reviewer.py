"""A reviewer: approves calls of the tools that it is started with, and rejects all others with a reason. With ``--rules FILE`` it decides
by rules on the arguments of calls, and says why it leaves a proposal to people.

Its participant needs the calls that it approves, and ``mcp/request:tools/call:*_proposal*`` to reject and to list; with rules also
``mcp/request:tools/list`` of those who run the calls.
"""

import argparse
import time
from pathlib import Path

import anyio

import portmoot


async def definition_of(me: portmoot.Participant, proposal: portmoot.IncomingProposal) -> str | None:
    """The digest of the tool's definition, as the participant that runs it lists it now."""
    try:
        listed = await me.request(proposal.to[0], "tools/list")
    except portmoot.CallError:
        return None
    tools = [tool for tool in listed.get("tools", []) if tool.get("name") == proposal.tool]
    return portmoot.definition_digest(tools[0]) if tools else None


async def by_rules(rules: portmoot.RuleSet, me: portmoot.Participant, proposal: portmoot.IncomingProposal) -> str:
    definition = await definition_of(me, proposal) if len(proposal.to) == 1 else None
    server = portmoot.participant_digest(proposal.to[0]) if proposal.to else None
    call = portmoot.RuledCall.of(proposal, at_ms=time.time_ns() // 1_000_000, definition=definition, server=server)
    answer = rules.decide(call) if call else None
    if call and answer and answer.decision == "approve":
        # Before it runs, so that two at once cannot both have the last use.
        rules.charge(call, answer)
        try:
            await proposal.fulfil()
        except portmoot.Refused as refused:
            rules.returned(call.operation)
            return f"not decided: {refused}"
        rules.answered(call, time.time_ns() // 1_000_000)
        return f"approved by {answer.name}"
    if answer and answer.decision == "reject":
        await proposal.reject(answer.rule.sentence)
        return f"rejected by {answer.name}"
    why = [str(explained) for explained in rules.explain(call)] if call else ["it is not for one participant"]
    return "\n".join(["left to people", f'definition = "{definition}"', f'server = "{server}"', *why])


async def main(allowed: list[str], rules: portmoot.RuleSet | None) -> None:
    async with portmoot.connect(mode="directed+proposals") as me:

        @me.on_proposal
        async def review(proposal: portmoot.IncomingProposal) -> None:
            said = ""
            if rules is not None:
                said = ": " + await by_rules(rules, me, proposal)
            elif proposal.tool in allowed:
                await proposal.fulfil()
            else:
                await proposal.reject(f"only {', '.join(allowed)} may be called here")
            for line in f"decided about {proposal.tool} of {proposal.sender}{said}".split("\n"):
                print(portmoot.visible(line), flush=True)

        # Those from before this program started.
        for waiting in await me.waiting():
            if waiting.may_decide and waiting.target in allowed:
                await waiting.approve()
                print(f"approved {waiting.target} of {waiting.sender}, which waited", flush=True)
        print(f"reviewing as {me.id}", flush=True)
        await anyio.sleep_forever()


parser = argparse.ArgumentParser()
parser.add_argument("allowed", nargs="*", metavar="TOOL")
parser.add_argument("--rules", type=Path)
words = parser.parse_args()
anyio.run(main, words.allowed, portmoot.RuleSet.parse(words.rules.read_text()) if words.rules else None)
