"""Calls as rules see them, and the digests that rules name, by the vectors that the gateway is held by too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

import portmoot
from portmoot import RuledCall, events
from portmoot._rules.arguments import Arguments

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[3] / "crates/core/rules/vectors/call.json").read_text(encoding="utf-8")
)
APPROVING = """[[rule]]
id = "yes"
author = "ann"
decision = "approve"
kind = "mcp/request:tools/call:pay"
to = "bank"
proposers = ["scout"]
definition = "DIGEST"
server = "DIGEST"
expires = 2999-01-01T00:00:00Z
uses = 2
"""
CALLS = [case for case in CASES if "method" in case]
DEFINITIONS = [case for case in CASES if "definition" in case]


def proposal(
    params: str | None, method: str = "tools/call", target: str | None = "pay", to: tuple[str, ...] = ("bank",)
) -> portmoot.IncomingProposal:
    call = portmoot.Call(method, target, params, None)
    envelope = portmoot.Envelope("p1", "scout", to, "mcp/proposal", None, None, "{}", "{}")
    # Only decisions need the participant.
    return portmoot.IncomingProposal(events.Proposed(envelope, call), cast(portmoot.Participant, None))


@pytest.mark.parametrize("case", CALLS, ids=[case["name"] for case in CALLS])
def test_a_proposal_is_the_call_that_the_vectors_say(case: dict[str, Any]) -> None:
    ruled = RuledCall.of(proposal(case["params"], case["method"]), at_ms=7, definition="ab", server="cd")
    assert ruled is not None
    read = ruled.read
    arguments = ruled.arguments if isinstance(read, Arguments) else None
    assert {"arguments": arguments, "beside": list(ruled.beside)} == case["expect"]
    assert ruled.kind == f"mcp/request:{case['method']}:pay"
    assert (ruled.proposer, ruled.to, ruled.at_ms) == ("scout", "bank", 7)
    assert (ruled.definition, ruled.server) == ("ab", "cd")


def test_proposals_of_one_id_are_counted_each_and_returned_each() -> None:
    digest = "ab" * 32
    rules = portmoot.RuleSet.parse(APPROVING.replace("DIGEST", digest))

    def ruled(one: portmoot.IncomingProposal) -> RuledCall:
        call = RuledCall.of(one, at_ms=1_795_780_800_000, definition=digest, server=digest)
        assert call is not None
        return call

    first, second, third = proposal("{}"), proposal("{}"), proposal("{}")
    assert first.id == second.id and ruled(first).operation == ruled(first).operation
    for one in (first, first, second):
        answer = rules.decide(ruled(one))
        assert answer is not None
        rules.charge(ruled(one), answer)
    assert rules.decide(ruled(third)) is None, "two uses are spent"
    # What did not count gives back no use of another one.
    rules.returned(ruled(third).operation)
    assert rules.decide(ruled(third)) is None
    rules.returned(ruled(second).operation)
    assert rules.decide(ruled(third)) is not None


@pytest.mark.parametrize("to", [(), ("bank", "till")])
def test_a_proposal_for_none_or_several_is_left_to_people(to: tuple[str, ...]) -> None:
    assert RuledCall.of(proposal("{}", to=to), at_ms=7) is None


@pytest.mark.parametrize(("method", "target"), [("tools/call", ""), ("tools:call", "pay"), ("tools/*", "pay"), ("", None)])
def test_a_proposal_that_no_kind_names_is_left_to_people(method: str, target: str | None) -> None:
    assert RuledCall.of(proposal("{}", method, target), at_ms=7) is None


@pytest.mark.parametrize("case", DEFINITIONS, ids=[case["name"] for case in DEFINITIONS])
def test_a_definition_has_the_digest_that_the_vectors_say(case: dict[str, Any]) -> None:
    assert portmoot.definition_digest(case["definition"]) == case["expect"]


def test_a_definition_that_was_read_has_the_digest_of_its_text() -> None:
    text = '{"b": 1.0, "a": ["\\u00e9", -5, null], "name": "pay"}'
    assert portmoot.definition_digest(json.loads(text)) == portmoot.definition_digest(text) is not None
    for unwritable in ({"a": float("nan")}, {"a": "\ud800"}, {"a": object()}):
        assert portmoot.definition_digest(unwritable) is None


def test_a_participant_has_a_digest_of_its_name() -> None:
    # printf 'portmoot/participant/1\0worker' | sha256sum
    assert portmoot.participant_digest("worker") == "07b6de8e71280c31da741a69ff3c62c294c12c611416e81b33035615f81c88e0"
    names = ["worker", "Worker", "worker ", "", "w\u00f6rker", "\ud800"]
    assert len({portmoot.participant_digest(name) for name in names}) == len(names)


def test_what_cannot_be_read_is_approved_by_no_rule_and_caught_by_one_that_asks() -> None:
    head = 'author = "ann"\nkind = "mcp/request:tools/call:pay"\nproposers = ["scout"]\n'
    digest = "ab" * 32
    approving = APPROVING.replace("DIGEST", digest)
    asking = f'[[rule]]\nid = "ask"\ndecision = "ask"\n{head}[rule.when]\n"/a" = {{ equals = 1 }}\n'
    for params, decisions in [("{}", ("approve", None)), ("[]", (None, "ask")), ('{"arguments":1}', (None, "ask")), ("{", (None, "ask"))]:
        ruled = RuledCall.of(proposal(params), at_ms=1_795_780_800_000, definition=digest, server=digest)
        assert ruled is not None
        answers = [portmoot.RuleSet.parse(toml).decide(ruled) for toml in (approving, asking)]
        assert tuple(answer and answer.decision for answer in answers) == decisions, params
