"""Sets of rules that a program makes, and what files of rules may hold, as the gateway has it."""

from __future__ import annotations

import dataclasses
import time

import pytest

from portmoot import Rule, RuledCall, RuleFileError, RuleSet, RuleSetError
from portmoot._capability import _matches
from portmoot._rules.bounds import RULES_MAX, TOOL_RULES_MAX
from portmoot._rules.parse import parse_rules
from portmoot._rules.window import read_time

ASKING = '[[rule]]\nid = "ID"\nauthor = "ann"\ndecision = "ask"\nkind = "mcp/request:tools/call:TOOL"\nproposers = ["*"]\n'


def file(count: int, tools: int) -> str:
    return "".join(ASKING.replace("ID", f"r{at}").replace("TOOL", f"t{at % tools}") for at in range(count))


def one(more: str = "", tool: str = "t") -> Rule:
    [rule] = parse_rules(ASKING.replace("ID", "r").replace("TOOL", tool) + more)
    return rule


@pytest.mark.parametrize(
    ("count", "tools", "why"),
    [
        (RULES_MAX, 8, None),
        (RULES_MAX + 1, 9, "more than 256 rules"),
        (TOOL_RULES_MAX, 1, None),
        (TOOL_RULES_MAX + 1, 1, "more than 32 rules of one tool"),
    ],
)
def test_a_set_has_so_many_rules_whoever_makes_it(count: int, tools: int, why: str | None) -> None:
    # Each part is a file that is accepted.
    rules = [rule for at in range(count) for rule in parse_rules(ASKING.replace("ID", f"r{at}").replace("TOOL", f"t{at % tools}"))]
    if why is None:
        assert sorted(RuleSet(rules).rules, key=lambda rule: rule.id) == sorted(rules, key=lambda rule: rule.id)
        assert RuleSet.parse(file(count, tools)).rules == RuleSet(rules).rules
        return
    with pytest.raises(RuleSetError, match=why) as of_set:
        RuleSet(rules)
    assert of_set.value.rule.id == f"r{count - 1}"
    with pytest.raises(RuleFileError, match=why) as of_file:
        RuleSet.parse(file(count, tools))
    assert of_file.value.rule == f"r{count - 1}"


def test_two_rules_of_a_set_have_no_id_in_common() -> None:
    with pytest.raises(RuleSetError, match="rule r: the id is taken"):
        RuleSet([one(), one(tool="u")])
    RuleSet([one(), dataclasses.replace(one(tool="u"), id="s")])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"uses": 5}, "would end a rule"),
        ({"decision": "approve"}, "`to` is missing"),
        ({"decision": "allow"}, "no such decision"),
        ({"id": "a b\x1b"}, "the id of a rule"),
        ({"version": 0}, "versions begin at 1"),
        ({"proposers": ()}, "has 0 proposers"),
        ({"proposers": ["*"]}, "says something else"),
        ({"expires_ms": 1}, "says something else"),
        ({"target": "a*"}, "no wildcard"),
        ({"when": ((0, 0),)}, "cannot be written"),
    ],
)
def test_a_rule_that_no_file_could_hold_is_none_of_a_set(changed: dict[str, object], why: str) -> None:
    wrong = dataclasses.replace(one(), **changed)  # type: ignore[arg-type]
    with pytest.raises(RuleSetError, match=why) as error:
        RuleSet([wrong])
    assert "\x1b" not in str(error.value) and error.value.rule == wrong


def test_a_set_cannot_be_changed_behind_its_checks() -> None:
    rules = RuleSet([one()])
    assert isinstance(rules.rules, tuple)


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        ("2026-12-06T09:00:00Z", True),
        ("2026-12-06t09:00:00z", True),
        ("2026-12-06 09:00:00+01:30", True),
        ("2026-12-06T09:00:00.000Z", True),
        # Of the milliseconds none is there.
        ("2026-12-06T09:00:00.0004Z", True),
        ("2026-12-06T09:00:00.001Z", False),
        ("2026-12-06T09:00:00.10Z", False),
        ("2026-12-06T09:00:00.Z", False),
        ("2026-12-06T24:00:00Z", False),
        ("2026-12-06T23:59:60Z", False),
        ("2026-12-06T09:00:00+24:00", False),
        ("2026-12-06T09:00:00-00:60", False),
        ("2026-12-06T09:00:00", False),
        ("2026-13-06T09:00:00Z", False),
        ("1969-12-31T23:59:59Z", False),
        ("0000-01-01T00:00:00Z", False),
        ("2026-12-06T09:00:0\u0660Z", False),
    ],
)
def test_times_are_read_as_the_gateway_reads_them(text: str, is_time: bool) -> None:
    assert (read_time(text) is not None) is is_time


@pytest.mark.parametrize(
    ("name", "why"),
    [
        # A blank that is none, Latin beside Cyrillic, Cyrillic beside Han.
        ("a\u2800b", "a character that is not allowed"),
        ("a\u200cb", "a character that is not allowed"),
        ("sc\u043eut", "mixes scripts"),
        ("\u0431\u6f22", "mixes scripts"),
        ("\u00e9\u6f22", "mixes scripts"),
        ("scout-\u6f22\u5b57", None),
        ("scout-\ud55c\uae00", None),
        ("zo\u00eb", None),
        ("\u0411\u043e\u0440\u0438\u0441", None),
    ],
)
def test_names_are_those_that_the_gateway_accepts(name: str, why: str | None) -> None:
    text = ASKING.replace("ID", "r").replace("TOOL", "t").replace('"ann"', f'"{name}"')
    if why is None:
        assert RuleSet.parse(text).rules[0].author == name
        return
    with pytest.raises(RuleFileError, match=why):
        RuleSet.parse(text)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("\u00e9", "a set has letters"),
        ("\u00e9-z", "a set has letters"),
        ("a-\u00e9", "a range goes up"),
        ("z-a", "a range goes up"),
        ("", "name at least one"),
    ],
)
def test_faults_of_sets_are_named_as_the_gateway_names_them(said: str, why: str) -> None:
    with pytest.raises(RuleFileError, match=why):
        one(f'[rule.when]\n"/a" = {{ chars = "{said}", length = [1, 2] }}\n')


def test_members_that_look_like_the_one_that_is_tested_are_unclear() -> None:
    """A server may read the other one: a rule that rejects or asks takes that as a match, and one that approves never."""
    digest = "ab" * 32
    approving = (
        f'[[rule]]\nid = "r"\nauthor = "ann"\ndecision = "approve"\nkind = "mcp/request:tools/call:t"\nto = "s"\nproposers = ["scout"]\n'
        f'definition = "{digest}"\nserver = "{digest}"\nexpires = 2999-01-01T00:00:00Z\nuses = 5\n'
    )
    for arguments, of_equals, of_absent, is_approved in [
        ('{"to":"bob"}', "held", "failed", True),
        ('{"to":"eve"}', "failed", "failed", False),
        ("{}", "failed", "held", False),
        ('{"to":"eve","To":"bob"}', "unclear", "unclear", False),
        ('{"to":"bob","To":"eve"}', "held", "unclear", False),
        ('{"To":"bob"}', "unclear", "unclear", False),
        ('{"to":"eve","t\u043e":"bob"}', "unclear", "unclear", False),
        ('{"to":{"name":"bob"}}', "unclear", "unclear", False),
        ('{"to":"eve","too":"bob"}', "failed", "failed", False),
    ]:
        call = RuledCall("1", "scout", "s", "mcp/request:tools/call:t", 1_795_780_800_000, arguments, definition=digest, server=digest)
        for test, fit in [('equals = "bob"', of_equals), ("absent = true", of_absent)]:
            when = f'[rule.when]\n"/to" = {{ {test} }}\n'
            asking = RuleSet([one(when)])
            [explained] = asking.explain(call)
            assert explained.checks[-1].fit.word == fit, (arguments, test)
            assert explained.acts is (fit != "failed") is (asking.decide(call) is not None), (arguments, test)
        assert (RuleSet.parse(approving + '[rule.when]\n"/to" = { equals = "bob" }\n').decide(call) is not None) is is_approved, arguments


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*", "", True),
        ("a*", "a", True),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c", False),
        ("*bc*c", "abc", False),
        ("a.c", "abc", False),
        ("a*", "a\n", True),
        ("", "", True),
    ],
)
def test_a_star_stands_for_any_run_of_characters(pattern: str, text: str, fits: bool) -> None:
    assert _matches(pattern, text) is fits


def test_what_a_file_and_a_name_cost_is_bounded() -> None:
    begin = time.process_time()
    # A pattern that could be tried in very many ways.
    rules = RuleSet([dataclasses.replace(one(), proposers=("*a" * 200 + "*b",))])
    assert rules.decide(RuledCall("1", "a" * 5_000, "s", "mcp/request:tools/call:t", 0)) is None
    # More members than a rule may name, each of which would be compared with each.
    members = "".join(f'"/m{at}" = {{ equals = 1 }}\n' for at in range(20_000))
    with pytest.raises(RuleFileError, match="more than 64 members"):
        one(f"[rule.when]\n{members}")
    assert time.process_time() - begin < 20



def test_a_rule_in_shadow_says_what_it_would_decide_and_spends_its_budget() -> None:
    digest = "ab" * 32
    text = (
        '[[rule]]\nid = "r"\nauthor = "ann"\ndecision = "approve"\nkind = "mcp/request:tools/call:t"\nto = "s"\nproposers = ["scout"]\n'
        f'definition = "{digest}"\nserver = "{digest}"\nexpires = 2999-01-01T00:00:00Z\nuses = 1\nshadow = true\n'
    )
    rules = RuleSet.parse(text)
    assert rules.rules[0].sentence.startswith("in shadow, where it decides nothing: scout may call t of s")
    said = []
    for operation in ("1", "1", "2"):
        call = RuledCall(operation, "scout", "s", "mcp/request:tools/call:t", 1_795_780_800_000, "{}", definition=digest, server=digest)
        assert rules.decide(call) is None
        said.append(str(rules.explain(call)[0]).split("\n")[0])
        rules.note(call, rules.would_decide(call))
    would, would_not = "r.1 is in shadow, and would decide it (approve)", "r.1 is in shadow, and would not decide it (approve)"
    assert said == [would, would_not, would_not]
    assert rules.spent.uses(rules.rules[0]) == 1
