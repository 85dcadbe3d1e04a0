"""Rules, by the vectors that the crate of rules is held by too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portmoot import RuleAnswer, RuledCall, RuleFileError, RuleSet
from portmoot._rules.parse import parse_rules

VECTORS = Path(__file__).parents[3] / "crates/core/rules/vectors"
DIGEST = "ab" * 32
NOON_MS = 1_795_780_800_000


def cases(name: str) -> pytest.MarkDecorator:
    read: list[dict[str, Any]] = json.loads((VECTORS / name).read_text(encoding="utf-8"))
    assert len(read) >= 5
    return pytest.mark.parametrize("case", read, ids=[case["name"] for case in read])


def call_of(value: dict[str, Any], operation: str = "1") -> RuledCall:
    return RuledCall(
        operation=operation,
        proposer=value.get("proposer", "scout"),
        to=value.get("to", "github"),
        kind=value.get("kind", "mcp/request:tools/call:create_issue"),
        at_ms=value.get("at_ms", NOON_MS),
        arguments=value["arguments"],
        beside=tuple(value.get("beside", ())),
        definition=value.get("definition", DIGEST),
        server=value.get("server", DIGEST),
    )


@cases("parse.json")
def test_files_of_rules_read_as_the_vectors_say(case: dict[str, Any]) -> None:
    found: dict[str, Any]
    try:
        rules = parse_rules(case["toml"])
        found = {
            "rules": [{"name": one.name, "text": one.text, "digest": one.digest, "sentence": one.sentence} for one in rules]
        }
    except RuleFileError as error:
        places = {"line": error.line, "column": error.column, "rule": error.rule}
        found = {"error": {**places, "message": error.message, "remedy": error.remedy}}
    assert found == case["expect"]


def said(answer: RuleAnswer) -> dict[str, Any]:
    return {"rule": answer.name, "decision": answer.decision}


@cases("match.json")
def test_rules_decide_as_the_vectors_say(case: dict[str, Any]) -> None:
    rules = RuleSet.parse(case["toml"])
    found: list[dict[str, Any] | None] = []
    for at, value in enumerate(case["calls"]):
        call, stage = call_of(value, str(at)), value.get("stage", "proposed")
        answer, would = rules.decide(call, stage), rules.would_decide(call, stage)
        rules.note(call, would)
        if answer is not None and answer.decision == "approve":
            rules.charge(call, answer)
        if answer is None and stage == "direct":
            rules.charge(call)
            rules.answered(call)
        one = {} if answer is None else said(answer)
        found.append({**one, **({"would": [said(other) for other in would]} if would else {})} or None)
    assert found == case["expect"]


@cases("explain.json")
def test_rules_explain_as_the_vectors_say(case: dict[str, Any]) -> None:
    explained = RuleSet.parse(case["toml"]).explain(call_of(case["call"]))
    assert [
        {
            "rule": one.rule.name,
            "acts": one.acts,
            "checks": [
                {"asked": check.asked, "found": check.found, "fit": check.fit.word, "is_guard": check.is_guard}
                for check in one.checks
            ],
        }
        for one in explained
    ] == case["expect"]


@pytest.mark.parametrize("name", ["parse.json", "match.json", "explain.json"])
def test_what_is_printed_reads_as_the_same_rules(name: str) -> None:
    for case in json.loads((VECTORS / name).read_text(encoding="utf-8")):
        try:
            rules = parse_rules(case["toml"])
        except RuleFileError:
            continue
        again = parse_rules("\n".join(rule.text for rule in rules))
        assert again == rules and [rule.digest for rule in again] == [rule.digest for rule in rules]
