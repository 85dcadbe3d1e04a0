"""Rules before hostile files and arguments: nothing raises, and nothing is approved that a naive reading does not cover."""

from __future__ import annotations

import json
import random
import tomllib
from typing import Any

import pytest

from portmoot import RuledCall, RuleFileError, RuleSet
from portmoot._rules import toml
from portmoot._rules.toml import Table, TomlError, Value

DIGEST = "ab" * 32
HEAD = f"""[[rule]]
id = "r1"
author = "ann"
decision = "approve"
kind = "mcp/request:tools/call:t"
to = "s"
proposers = ["scout"]
definition = "{DIGEST}"
server = "{DIGEST}"
expires = "2026-12-06T09:00:00Z"
uses = 10000
"""
ASKING = '[[rule]]\nid = "r2"\nauthor = "ann"\ndecision = "ask"\nkind = "mcp/request:tools/call:t"\nproposers = ["*"]\n'


def call(arguments: str | bytes, operation: str = "1", **more: Any) -> RuledCall:
    ruled: dict[str, Any] = {"proposer": "scout", "to": "s", "definition": DIGEST, "server": DIGEST, "at_ms": 1_795_780_800_000}
    return RuledCall(operation=operation, kind="mcp/request:tools/call:t", arguments=arguments, **(ruled | more))


def approves(rules: RuleSet, arguments: str | bytes) -> bool:
    return rules.decide(call(arguments)) is not None


# Conditions, each with a naive reading of a value that was read by the standard library.
SAID: list[tuple[str, Any]] = [
    ('{ equals = "acme" }', lambda value: value == "acme"),
    ('{ one_of = ["a/b", "7"] }', lambda value: value in ("a/b", "7")),
    ("{ integer = [-1, 9] }", lambda value: type(value) is int and -1 <= value <= 9),
    ("{ decimal = [0.0, 9.0] }", lambda value: type(value) is float and 0 <= value <= 9),
    (
        '{ under = "/srv/docs" }',
        lambda value: isinstance(value, str) and value.startswith("/srv/docs/") and ".." not in value and "/." not in value,
    ),
    (
        '{ url = { origin = "https://a.com", under = "/v1" } }',
        lambda value: isinstance(value, str) and value.startswith("https://a.com/v1/") and not set("?#@%") & set(value),
    ),
    ('{ chars = "A-Z0-9", length = [1, 6] }', lambda value: isinstance(value, str) and value.isascii() and value.isalnum()),
    ('{ shape = ["A-9"], length = [3, 9] }', lambda value: isinstance(value, str) and value.isascii() and "-" in value),
    (
        "{ count = [0, 2], each = { integer = [1, 9] } }",
        lambda value: isinstance(value, list) and len(value) <= 2 and all(type(one) is int and 1 <= one <= 9 for one in value),
    ),
]
VALUES = [
    *('"acme"', '"Acme"', '"acme "', '"\\u0061cme"', '"\u0430cme"', '"a/b"', '"7"', "7", "7.0", "7e0", "0", "-0", "-1", "9", "2.5"),
    *("-2.25", "1e400", "9" * 5000, "0.1000000000000000055", "null", "true", "[]", "[7]", '["acme"]', '[3,"4"]', "[[3]]", "{}"),
    *('"/srv/docs/a"', '"/srv/docs/.env"', '"/srv/docs"', '"srv/docs/a"', '"https://a.com/v1/x"', '"https://a.com.evil.com/v1/x"'),
    *('"AB1"', '"ab_c"', '"-rf"', '"AB-12"', '""', '"\\ud800"', "NaN", "Infinity", "01", "+1", "1.", '"\x01"', '"\\x"', "'a'"),
]
PARTS = [
    *("..", "/..", "/", "//", "\\\\", "%2e%2e", " ", " -o", "-", "\\u200b", "\uff0e", "~", "$HOME", "`id`", ";", "\\n", "\\u0000"),
    *(".", "@", "?q=1", "#x", ":8", "\u0430", "\u00e9", "*", "\u4e36", "\U0001f600", "\u0378", "e\u0301", "\uff0f", "\u212a", "\u0131"),
]


def near(chance: random.Random) -> str:
    """A value near the conditions, or a text of one with parts set in."""
    value = chance.choice(VALUES)
    while value.startswith('"') and value.endswith('"') and chance.random() < 0.5:
        at = chance.randint(1, len(value) - 1)
        value = value[:at] + chance.choice(PARTS) + value[at:]
    return value


@pytest.mark.parametrize(("said", "holds"), SAID, ids=[said for said, _ in SAID])
def test_what_is_approved_satisfies_a_naive_reading(said: str, holds: Any) -> None:
    chance = random.Random(said)
    rules = RuleSet.parse(f'{HEAD}[rule.when]\n"/a" = {said}\n')
    approved = 0
    for _ in range(4000):
        value = near(chance)
        more = chance.choice(["", "", "", f',"b":{near(chance)}', f',"A":{near(chance)}', f',"a":{near(chance)}', ',"\\u0061":1'])
        arguments = f'{{"a":{value}{more}}}'
        if approves(rules, arguments):
            approved += 1
            read = json.loads(arguments)
            assert list(read) == ["a"] and holds(read["a"]), arguments
            assert not more or json.loads(f"[{value}]"), arguments
    assert approved > 10


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":1,"a":1}',
        '{"a":1,"\\u0061":1}',
        '{"a":' + "9" * 100_000 + "}",
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "[" * 100_000,
        '{"a":"\\ud800"}',
        '{"a":"\ud800"}',
        '{"\\udc00":1}',
        b'{"a":"\xff"}',
        "\ufeff{}",
        '{"a":NaN}',
        "",
        "null",
        '{"a":1}x',
        '{"a":"' + "x" * 70_000 + '"}',
        "{" + ",".join(f'"m{at}":1' for at in range(65)) + "}",
        '{"a":[' + ",".join(["1"] * 257) + "]}",
        '{"a\u200b":1}',
        '{"e\u0301":1}',
    ],
    ids=range(19),
)
def test_hostile_arguments_are_unclear(arguments: str | bytes) -> None:
    approving = RuleSet.parse(HEAD + '[rule.when]\n"/a" = { integer = [1, 9] }\n')
    [explained] = approving.explain(call(arguments))
    assert not explained.acts and approving.decide(call(arguments)) is None
    # A rule that asks takes it as a match.
    asking = RuleSet.parse(ASKING + '[rule.when]\n"/a" = { integer = [1, 9] }\n')
    assert asking.decide(call(arguments)) is not None
    asking.charge(call(arguments))
    asking.answered(call(arguments))


@pytest.mark.parametrize("name", ["", "\ud800", "a" * 10_000, "\u0455cout", "*", "scout\n"])
def test_hostile_names_match_no_approving_rule(name: str) -> None:
    rules = RuleSet.parse(HEAD)
    for hostile in (call("{}", proposer=name), call("{}", to=name), call("{}", definition=name), call("{}", server=name)):
        assert rules.decide(hostile) is None
        rules.explain(hostile)
    assert rules.decide(RuledCall("1", "scout", "s", name, 0)) is None
    assert approves(rules, "{}")


def test_beyond_ascii_an_approving_rule_holds_only_where_the_spelling_is_known() -> None:
    for text, is_known in [("\u00fcmlaut", True), ("\u6f22\u5b57", True), ("\u0411\u043e\u0440\u0438\u0441", True), ("a \u2014 b", False)]:
        rules = RuleSet.parse(f'{HEAD}[rule.when]\n"/a" = {{ equals = "{text}" }}\n')
        assert approves(rules, json.dumps({"a": text})) is is_known, text
    # What may look like the constant is a match for a rule that asks; with an accent it does not.
    rules = RuleSet.parse(ASKING + '[rule.when]\n"/a" = { equals = "boss" }\n')
    for text, asks in [("boss", True), ("b\u043ess", True), ("\uff42oss", True), ("b\u00f6ss", False), ("bass", False), ("\u6f22", True)]:
        assert (rules.decide(call(json.dumps({"a": text}))) is not None) is asks, text


def test_values_that_may_look_alike_are_counted_together() -> None:
    rules = RuleSet.parse(ASKING + 'count = [{ same = "/to", max = 2, within = "1d" }]\n')
    for at, (to, asks) in enumerate([("bob", False), ("\u0431", False), ("BOB", True), ("\u6f22", True), ("eve", False), ("eve", True)]):
        ruled = call(json.dumps({"to": to}), str(at))
        assert (rules.decide(ruled, "direct") is not None) is asks, to
        if not asks:
            rules.charge(ruled)


def test_a_use_counts_once_and_is_given_back() -> None:
    rules = RuleSet.parse(HEAD.replace("uses = 10000", "uses = 2"))
    for operation in ("1", "1", "2"):
        answer = rules.decide(call("{}", operation))
        assert answer is not None
        rules.charge(call("{}", operation), answer)
    assert rules.decide(call("{}", "3")) is None
    for _ in range(2):
        rules.returned("2")
    assert rules.decide(call("{}", "3")) is not None


def plain(value: Value) -> Any:
    """A value as the reader of the standard library has it."""
    if value.kind == "table":
        return plain_table(value.table)
    if value.kind == "list":
        return [plain(element) for element in value.elements]
    return value.text if value.kind == "text" else tomllib.loads(f"a = {value.text}")["a"]


def plain_table(table: Table) -> dict[str, Any]:
    return {key: plain(item.value) for key, item in table.items.items()}


def test_toml_is_read_as_the_standard_library_reads_it() -> None:
    pieces = [
        *("[[rule]]\n", "[rule.when]\n", "[a]\n", "[a.b]\n", "[[a.c]]\n", "a = 1\n", 'b."c d" = "x"\n', "b.e = 'y'\n", "c = [1, 2,\n3]\n"),
        *("d = { e = 1, f.g = 'z' }\n", 'e = """\nx\\\n  y"z"""\n', "f = '''a'b'''\n", "# no\n", 'g = "\\u00e9\\n"\n', "h = 1_000\n"),
        *("i = -0.5e3\n", "j = true\n", "k = 2026-12-06T09:00:00Z\n", "[", "]", "=", '"', "'", "\n", "{", "}", ",", ".", "\\", "x"),
    ]
    chance, read = random.Random(7), 0
    for _ in range(20_000):
        text = "".join(chance.choice(pieces[:18] if chance.random() < 0.9 else pieces) for _ in range(chance.randint(1, 7)))
        try:
            found = plain_table(toml.parse(text))
        except TomlError:
            continue
        try:
            expected = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            # What TOML 1.1 adds: line ends and a comma at the end in braces.
            assert "{" in text, text
            continue
        read += 1
        assert found == expected, text
    assert read > 1000


def test_hostile_files_are_refused_with_a_place() -> None:
    chance = random.Random(11)
    whole = HEAD + 'rate = "2/h"\nsum = [{ of = "/a", max = 3, within = "1d" }]\n[rule.when]\n"/a" = { integer = [1, 9] }\n'
    for _ in range(3000):
        at, upto = sorted(chance.randint(0, len(whole)) for _ in range(2))
        text = whole[:at] + chance.choice(["", '"', "[", "{", "\x00", "\ud800", "=", "9" * 5000, "\n"]) + whole[upto if chance.random() < 0.3 else at :]
        try:
            RuleSet.parse(text)
        except RuleFileError as error:
            assert error.line >= 1 and error.column >= 1 and str(error)
    for text in ("a = " + "[" * 100_000, "a = " + "{b=" * 100_000, "x" * (1024 * 1024 + 1), "a." * 100_000 + "b = 1"):
        with pytest.raises(RuleFileError):
            RuleSet.parse(text)
