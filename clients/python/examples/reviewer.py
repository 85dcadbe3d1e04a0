"""A reviewer: approves calls of the tools that it is started with, and rejects all others with a reason. With ``--rules FILE`` in place of
tools it decides by rules on the arguments of calls, and says why it leaves a proposal to people.

Its participant needs the calls that it approves, and ``mcp/request:tools/call:*_proposal*`` to reject and to list; with rules also
``mcp/request:tools/list`` of those who run the calls. A file of rules is for one topic.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import anyio

import portmoot

NOT_SENT = (portmoot.Refused, portmoot.errors.NotConnected, portmoot.errors.Busy, portmoot.errors.InvalidEnvelope)


@dataclass(frozen=True)
class Outcome:
    """What became of a proposal here, in words."""

    said: str
    is_decided: bool = False
    has_succeeded: bool = False
    more: tuple[str, ...] = ()
    """Lines below it."""


def say(*lines: str) -> None:
    """Prints lines. Texts of others, such as a tool's name, make no further ones."""
    for line in lines:
        print(portmoot.visible(line), flush=True)


def report(proposal: portmoot.IncomingProposal, outcome: Outcome) -> None:
    decided = "decided" if outcome.is_decided else "not decided"
    say(f"{decided} about {proposal.tool} of {proposal.sender}: {outcome.said}", *outcome.more)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def fulfil(proposal: portmoot.IncomingProposal) -> Outcome:
    try:
        result = await proposal.fulfil()
    except NOT_SENT as why:
        # Also where someone else decided first.
        return Outcome(f"left as it is: {why}")
    except portmoot.CallError as why:
        return Outcome(f"approved, {why}", is_decided=True)
    if not portmoot.succeeded(result):
        return Outcome("approved, answered with an error", is_decided=True)
    return Outcome("approved, answered", is_decided=True, has_succeeded=True)


async def reject(proposal: portmoot.IncomingProposal, reason: str) -> Outcome:
    try:
        await proposal.reject(reason)
    except portmoot.CallError as why:
        # Someone else decided first, or it cannot be known.
        return Outcome(f"left as it is: {why}")
    return Outcome("rejected", is_decided=True)


async def definition_of(me: portmoot.Participant, to: str, tool: str) -> str | None:
    """The digest of the tool's definition, as the participant that runs it lists it now."""
    try:
        definition = await me.definition(to, tool)
    except portmoot.CallError as why:
        say(f"no definition of {tool} of {to}: {why}")
        return None
    return None if definition is None else portmoot.definition_digest(definition)


async def by_rules(rules: portmoot.RuleSet, me: portmoot.Participant, proposal: portmoot.IncomingProposal) -> Outcome:
    to = proposal.to[0] if len(proposal.to) == 1 else None
    definition = await definition_of(me, to, proposal.tool) if to and proposal.tool else None
    server = portmoot.participant_digest(to) if to else None
    call = portmoot.RuledCall.of(proposal, at_ms=now_ms(), definition=definition, server=server)
    if call is None:
        return Outcome("left to people", more=("it is not for one participant",))
    answer, would = rules.decide(call), rules.would_decide(call)
    rules.note(call, would)
    beside = tuple(f"{one.name} is in shadow, and would have decided it ({one.decision})" for one in would)
    if answer and answer.decision == "approve":
        # Before it runs, so that two at once cannot both have the last use.
        rules.charge(call, answer)
        outcome = await fulfil(proposal)
        if not outcome.is_decided:
            rules.returned(call.operation)
        if outcome.has_succeeded:
            rules.answered(call, now_ms())
        return Outcome(f"by {answer.name}: {outcome.said}", outcome.is_decided, more=beside)
    if answer and answer.decision == "reject":
        outcome = await reject(proposal, answer.rule.sentence)
        return Outcome(f"by {answer.name}: {outcome.said}", outcome.is_decided, more=beside)
    why = [line for explained in rules.explain(call) for line in str(explained).split("\n")]
    return Outcome("left to people", more=(f'definition = "{definition}"', f'server = "{server}"', *why))


async def decide_late(waiting: portmoot.WaitingProposal, allowed: list[str]) -> str:
    """Decides about a proposal from before this program started. Rules do not: the list has it as people see it, not as it was written."""
    if waiting.method != "tools/call" or waiting.target not in allowed:
        return "left to people"
    try:
        await waiting.approve()
    except portmoot.CallError as why:
        return f"left as it is: {why}"
    return "approved"


async def main(allowed: list[str], rules: portmoot.RuleSet | None) -> None:
    async with portmoot.connect(mode="directed+proposals") as me:
        # Of those that arrive until the list is read: they may be in the list too.
        early: set[str] = set()
        is_listed = False

        @me.on_proposal
        async def review(proposal: portmoot.IncomingProposal) -> None:
            if not is_listed:
                early.add(proposal.id)
            if rules is not None:
                outcome = await by_rules(rules, me, proposal)
            elif proposal.tool in allowed:
                outcome = await fulfil(proposal)
            else:
                outcome = await reject(proposal, f"only {', '.join(allowed)} may be called here")
            report(proposal, outcome)

        late = [one for one in await me.waiting() if one.may_decide and one.envelope not in early]
        is_listed = True
        for waiting in late:
            said = await decide_late(waiting, allowed)
            say(f"{said} {waiting.target} of {waiting.sender}, which waited")
        print(f"reviewing as {me.id}", flush=True)
        await anyio.sleep_forever()


def rules_of(file: Path) -> portmoot.RuleSet:
    try:
        return portmoot.RuleSet.parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as why:
        parser.error(f"{file}: {portmoot.visible(str(why))}")


parser = argparse.ArgumentParser()
parser.add_argument("allowed", nargs="*", metavar="TOOL", help="a tool whose calls it approves")
parser.add_argument("--rules", type=Path, metavar="FILE", help="rules by which it decides, in place of tools")

if __name__ == "__main__":
    words = parser.parse_args()
    if words.rules and words.allowed:
        parser.error("name tools or rules, not both: a tool that is named would be approved without a look at the rules")
    if not words.rules and not words.allowed:
        parser.error("name the tools whose calls it approves, or rules")
    anyio.run(main, words.allowed, rules_of(words.rules) if words.rules else None)
