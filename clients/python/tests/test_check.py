"""Strict validation, by the vectors that the SDK for Rust is held by too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import portmoot
from portmoot._capability import Capability, CapabilityError
from portmoot._check import verdict
from portmoot._kind import Kind, KindError

ROOT = Path(__file__).parents[3]
VECTORS: list[dict[str, Any]] = json.loads((ROOT / "docs/mcpx-vectors.json").read_text(encoding="utf-8"))["vectors"]


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["name"] for vector in VECTORS])
def test_every_vector_has_its_verdict(vector: dict[str, Any]) -> None:
    text = vector.get("text")
    found, target, why = verdict(json.dumps(vector["envelope"]) if text is None else text)
    assert (found, target) == (vector["verdict"], vector.get("target")), why
    if "why" in vector:
        assert why == vector["why"]


def test_there_are_vectors_of_every_verdict() -> None:
    assert len({vector["verdict"] for vector in VECTORS}) == 8 and len(VECTORS) > 130


def test_the_check_returns_what_may_be_done() -> None:
    call = next(one["envelope"] for one in VECTORS if one["name"] == "a call of a tool")
    envelope, act = portmoot.check(json.dumps(call))
    assert isinstance(act, portmoot.Request) and act.call.params == {"name": "echo"}
    assert (envelope.sender, envelope.to, envelope.payload["id"]) == ("a", ("b",), 1)
    with pytest.raises(portmoot.Mismatch):
        portmoot.check(json.dumps({**call, "kind": "mcp/request:tools/call:wipe"}))
    with pytest.raises(portmoot.EnvelopeError):
        portmoot.check("{}")


def test_params_are_passed_on_as_they_were_written() -> None:
    params = '{"name":"echo","arguments":{"n":1e400,"i":12345678901234567890123, "t":"\\u00e9"}}'
    text = '{"protocol":"mcpx/v0.1","id":"p","from":"a","kind":"mcp/proposal:tools/call:echo","payload":{"params":%s,"method":"tools/call"}}'
    _, act = portmoot.check(text % params)
    assert isinstance(act, portmoot.Proposed) and act.call.params_text == params


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"n":' + "9" * 100_000 + "}"])
def test_hostile_sizes_are_refused_and_do_no_harm(text: str) -> None:
    assert verdict(text)[0] == "malformed"


def test_the_truth_table_of_capabilities() -> None:
    rows = (ROOT / "crates/base/model/tests-data/capabilities.tsv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 90
    for row in rows:
        capability, kind, expect = row.split("\t")[:3]
        try:
            found = Capability.parse(capability).admits(Kind.parse(kind))
        except (CapabilityError, KindError):
            found = False
        assert found == (expect == "allow"), row


@pytest.mark.parametrize(
    ("context", "expect"),
    [
        ("file:///notes/a", True),
        ("file:///notes/100%25", True),
        ("file:///notes/é", True),
        ("file:///notes/../x", False),
        ("file:///notes/%2e%2e/x", False),
        ("file:///notes/%252e%252e/x", False),
        ("file:///notes/a%zz", False),
        ("file:///notes/a\u200b", False),
        ("file:///notes/a\x00", False),
        ("file:///notes/a ", False),
        ("file:///notes/..\uff0fx", False),
    ],
)
def test_a_partial_wildcard_matches_only_plain_uris(context: str, expect: bool) -> None:
    capability = Capability.parse("mcp/request:resources/read:file:///notes/*")
    assert capability.admits(Kind.parse(f"mcp/request:resources/read:{context}")) == expect


def test_a_capability_reaches_only_its_addressees() -> None:
    capability = Capability.parse("mcp/request:tools/call:search_*", ["search", "db-*"])
    kind = Kind.parse("mcp/request:tools/call:search_all")
    for to, expect in [((), False), (("search",), True), (("search", "db-1"), True), (("search", "x"), False)]:
        assert capability.admits(kind, to) == expect, to


def test_hidden_characters_are_shown() -> None:
    assert portmoot.visible("a\u202eb\x1b[2J\n é 語 \u200d") == r"a\u{202e}b\u{1b}[2J\u{a} é 語 \u{200d}"
