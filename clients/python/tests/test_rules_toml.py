"""Hostile TOML as a file of rules: each text has the error that says where it is wrong, and none has another one."""

from __future__ import annotations

import pytest

from portmoot import RuleFileError, RuleSet
from portmoot._rules.parse import FILE_BYTES_MAX
from portmoot._rules.toml import DEPTH_MAX

RULE = """[[rule]]
id = "r1"
author = "ann"
decision = "ask"
kind = "mcp/request:tools/call:t"
proposers = ["*"]
"""
BEHIND = 7
"""The line behind that rule."""
NO_TOML = "write TOML"
PAD = "#" + "x" * 1022 + "\n"
"""A KiB."""


def fault(text: str) -> RuleFileError:
    with pytest.raises(RuleFileError) as caught:
        RuleSet.parse(text)
    error = caught.value
    assert type(error) is RuleFileError and error.remedy
    lines = text.split("\n")
    assert 1 <= error.line <= len(lines) and 1 <= error.column <= len(lines[error.line - 1]) + 1
    assert str(error).startswith(f"line {error.line}, column {error.column}: ")
    return error


@pytest.mark.parametrize("open", ["[", "{a=", '{"a"=', "[{a=", "{a=["])
@pytest.mark.parametrize("count", [DEPTH_MAX + 1, 5_000, 250_000])
def test_deep_nesting(open: str, count: int) -> None:
    error = fault(f"{RULE}when = {open * count}"[:FILE_BYTES_MAX])
    assert (error.line, error.message, error.remedy) == (BEHIND, "nested too deeply", NO_TOML)


def test_nesting_that_may_be_there_is_read_and_refused_for_what_it_says() -> None:
    deep = "[" * DEPTH_MAX + "]" * DEPTH_MAX
    assert fault(f'{RULE}[rule.when]\n"/a" = {{ equals = {deep} }}\n').message == "a list or a date is no constant"
    assert fault(f"{RULE}when = {deep}\n").message == "`when` is no table in braces"


@pytest.mark.parametrize("key", ["{}\n", "[{}]\n", "[[{}]]\n", "{} = 1\n", "when = {{ {} = 1 }}\n"])
def test_long_paths_of_keys(key: str) -> None:
    for count in (DEPTH_MAX, 50_000):
        error = fault(RULE + key.format("a." * count + "b"))
        assert (error.message, error.line, error.remedy) == ("nested too deeply", BEHIND, NO_TOML)
    error = fault(RULE + "[" + "a." * (DEPTH_MAX - 1) + "b]\n")
    assert error.message == "`a` is not known here"
    assert fault(f'{RULE}["{"a" * 90_000}"]\n').message.endswith("is not known here")


HUGE = "9" * 300_000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        # Huge integers, and numbers that readers read differently.
        (f"uses = {HUGE}", "`uses` would end a rule that only rejects or asks"),
        (f"version = {HUGE}", "`version` is no whole number"),
        (f"version = -{HUGE}", "`version` is no whole number"),
        ("version = 4294967296", "`version` is no whole number"),
        ("version = 0", "versions begin at 1"),
        ("version = -0", "`version` is no whole number"),
        ("version = 1.0", "`version` is no whole number"),
        ("version = 1e0", "`version` is no whole number"),
        ("version = 0x1", "`version` is no number"),
        ("version = 0o1", "`version` is no number"),
        (f"version = 0b{'1' * 100_000}", "`version` is no number"),
        ("version = inf", "`version` is no whole number"),
        ("version = nan", "`version` is no whole number"),
        (f'when = {{ "/a" = {{ equals = {HUGE} }} }}', "not every reader of JSON reads this number alike"),
        (f'when = {{ "/a" = {{ integer = [0, {HUGE}] }} }}', "not every reader of JSON reads this number alike"),
        (f'when = {{ "/a" = {{ decimal = [0.{HUGE}, 1.0] }} }}', "not every reader of JSON reads this number alike"),
        ('when = { "/a" = { equals = -0 } }', "not every reader of JSON reads this number alike"),
        ('when = { "/a" = { equals = 1e400 } }', "not every reader of JSON reads this number alike"),
        ('when = { "/a" = { equals = nan } }', "not every reader of JSON reads this number alike"),
        (f'when = {{ "/a" = {{ count = [0, {HUGE}] }} }}', "`count` is no whole number"),
        (f'sum = [{{ of = "/a", max = {HUGE}, within = "1d" }}]', "not every reader of JSON reads this number alike"),
        (f'count = [{{ same = "/a", max = {HUGE}, within = "1d" }}]', "`max` is no whole number"),
        (f'rate = "{HUGE}/h"', "a rate is a number of calls in a minute, an hour or a day, as in `12/h`"),
        (
            f'sum = [{{ of = "/a", max = 1, within = "{HUGE}d" }}]',
            "a window is a number of minutes, hours or days up to 31 days, as in `30m`, `1h` or `7d`",
        ),
        # Dates and times.
        ("expires = 2026-12-06", "this is no time with an offset, in whole seconds"),
        ("expires = 09:00:00", "this is no time with an offset, in whole seconds"),
        ("expires = 2026-12-06T09:00:00", "this is no time with an offset, in whole seconds"),
        ("expires = 9999-99-99T99:99:99Z", "this is no time with an offset, in whole seconds"),
        ("expires = 0000-01-01T00:00:00Z", "this is no time with an offset, in whole seconds"),
        ("expires = 0001-01-01T00:00:00+23:59", "this is no time with an offset, in whole seconds"),
        ("expires = 1969-12-31T23:59:59Z", "this is no time with an offset, in whole seconds"),
        (f"expires = 2026-12-06T09:00:00.{HUGE}Z", "this is no time with an offset, in whole seconds"),
        (f'expires = "{HUGE}"', "this is no time with an offset, in whole seconds"),
        ("version = 2026-12-06", "`version` is no number"),
        ('when = { "/a" = { equals = 2026-12-06 } }', "a list or a date is no constant"),
        # Wrong types.
        ("expires = 5", "`expires` is no text in quotes"),
        ("to = 5", "`to` is no text in quotes"),
        ("to = ['s']", "`to` is no text in quotes"),
        ("to = { s = 1 }", "`to` is no text in quotes"),
        ("rate = 12", "`rate` is no text in quotes"),
        ("during = true", "`during` is no text in quotes"),
        ("version = '1'", "`version` is no number"),
        ("version = true", "`version` is no number"),
        ("when = 1", "`when` is no table in braces"),
        ("when = []", "`when` is no table in braces"),
        ("sum = { of = '/a' }", "`sum` is no list in brackets"),
        ("sum = [1]", "`sum` is no table in braces"),
        ("after = [[]]", "`after` is no table in braces"),
        ('when = { "/a" = 1 }', "`/a` is no table in braces"),
        ('when = { "/a" = { one_of = 1 } }', "`one_of` is no list in brackets"),
        ('when = { "/a" = { integer = [1, "2"] } }', "`integer` is no number"),
        ('when = { "/a" = { integer = [1] } }', "`integer` is no pair `[lowest, highest]`"),
        ('when = { "/a" = { absent = 1 } }', "`absent` is no `true` or `false`"),
        ('when = { "/a" = { url = "x" } }', "`url` is no table in braces"),
        # Keys that are not known.
        ("users = 1", "`users` is not known here"),
        ("Version = 1", "`Version` is not known here"),
        ('"" = 1', "`` is not known here"),
        ('"\\u0000" = 1', "`\\u{0}` is not known here"),
        ("'a\u202eb' = 1", "`a\\u{202e}b` is not known here"),
        ('when = { "/a" = { equal = 1 } }', "`equal` is not known here"),
        ('when = { "/a" = { equals = { jsn = "1" } } }', "`jsn` is not known here"),
        ('sum = [{ of = "/a", max = 1, within = "1d", more = 1 }]', "`more` is not known here"),
    ],
    ids=lambda value: value[:60] if len(value) > 60 else value,
)
def test_values_that_no_rule_may_have(line: str, message: str) -> None:
    error = fault(f"{RULE}{line}\n")
    assert (error.message, error.line, error.rule) == (message, BEHIND, "r1")


def test_wrong_types_where_rules_stand() -> None:
    for text, message in [
        ("rule = 1", "`rule` is no list in brackets"),
        ("rule = [1]", "`rule` is no table in braces"),
        ("[rule]\nid = 'r'", "`rule` is no list in brackets"),
        ("[[rules]]", "`rules` is not known here"),
        ("rule = [{}]", "`id` is missing"),
        ("[[rule]]\nid = 1", "`id` is no text in quotes"),
        ("rule = [[]]", "`rule` is no table in braces"),
        ("rule = 2026-12-06", "`rule` is no list in brackets"),
    ]:
        assert fault(text).message == message, text
    for text in ("", "rule = []", "# no rule", "\ufeff"):
        assert RuleSet.parse(text).rules == ()


@pytest.mark.parametrize(
    "lines",
    [
        "version = 1\nversion = 1\n",
        "version = 1\n'version' = 1\n",
        'version = 1\n"vers\\u0069on" = 1\n',
        "[rule.when]\n[rule.when]\n",
        "when.a = 1\nwhen = {}\n",
        "when = {}\nwhen.a = 1\n",
        "when = {}\n[rule.when]\n",
        "when = []\n[[rule.when]]\n",
        'when = { "/a" = { equals = 1, equals = 1 } }\n',
        'when = { "/a" = { equals = 1 }, "/a" = { equals = 2 } }\n',
        "[rule]\n",
        "[[rule.sum]]\n[rule.sum]\n",
    ],
)
def test_keys_that_are_there_twice(lines: str) -> None:
    error = fault(RULE + lines)
    assert (error.message, error.remedy) == ("duplicate key", NO_TOML)


@pytest.mark.parametrize("hidden", ["\x00", "\x01", "\x07", "\x1f", "\x7f", "\r", "\x0b", "\x0c"])
def test_characters_that_no_file_holds(hidden: str) -> None:
    bare = (f"{hidden}x", f"# {hidden}x", f"version{hidden} = 1", f"version = {hidden}1", f"version = 1{hidden}x")
    for line in (*bare, f'to = "s{hidden}"'):
        assert fault(f"{RULE}{line}\n").remedy == NO_TOML, line
    for line in (f"to = 's{hidden}'", f'to = """s{hidden}"""', f"to = '''s{hidden}'''", f'"{hidden}" = 1'):
        assert fault(f"{RULE}{line}\n").remedy == NO_TOML, line
    # Spelled as an escape it is a character of the name.
    error = fault(f'{RULE}to = "s\\u{ord(hidden):04x}"\n')
    assert (error.message, error.line) == ("the name holds a character that is not allowed", BEHIND)


def test_nul_and_half_pairs_in_all_places() -> None:
    for at in range(len(RULE) + 1):
        assert fault(RULE[:at] + "\x00" + RULE[at:]).remedy == NO_TOML
    assert fault(RULE + "# \ud800").message == "the file has half a surrogate pair"
    assert fault(RULE + 'to = "\\ud800"').remedy == NO_TOML
    assert fault(RULE + 'to = "\\U00110000"').remedy == NO_TOML
    assert fault(RULE + 'to = "\\x"').remedy == NO_TOML


def test_a_byte_order_mark_is_no_character_of_the_file_at_its_begin_alone() -> None:
    assert RuleSet.parse("\ufeff" + RULE).rules == RuleSet.parse(RULE).rules
    for text in ("\ufeff\ufeff" + RULE, RULE + "\ufeff", RULE + "\ufeffversion = 1", "\ufffe" + RULE):
        assert fault(text).remedy == NO_TOML
    assert fault(f'{RULE}to = "\ufeffs"\n').message == "the name holds a character that is not allowed"


def test_line_ends_of_other_machines() -> None:
    assert RuleSet.parse(RULE.replace("\n", "\r\n")).rules == RuleSet.parse(RULE).rules
    assert fault(RULE.replace("\n", "\r")).remedy == NO_TOML


WHEN = '[rule.when]\n"/a" = { equals = 1 }\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAD * 1024 + "x", f"the file is longer than {FILE_BYTES_MAX} bytes"),
        # 1 MiB in bytes is fewer characters.
        ("#" + "\u00e9" * (FILE_BYTES_MAX // 2), f"the file is longer than {FILE_BYTES_MAX} bytes"),
        ("[[rule]]\n" * 20_000, "`id` is missing"),
        ("rule = [" + "{}," * 20_000 + "]", "`id` is missing"),
        ("rule = [" + "1," * 20_000 + "]", "`rule` is no table in braces"),
        ("".join(f"k{at} = 1\n" for at in range(20_000)), "`k0` is not known here"),
        ("".join(f"[k{at}]\n" for at in range(20_000)), "`k0` is not known here"),
        ("a = '" + "x" * 1_000_000, "a text that does not end, or a character that must be escaped, expected `'`"),
        ('a = "' + "\\\\" * 500_000, 'a text that does not end, or a character that must be escaped, expected `"`'),
        ('a = """' + '""\\"' * 220_000, "a text of several lines that does not end"),
        ("a = '''" + "'' " * 320_000, "a text of several lines that does not end"),
        (" " * 1_000_000 + "=", "invalid key, expected a name"),
        (RULE + 'to = "' + "s" * 1_000_000 + '"\n', "the name is too long"),
        (RULE.replace('["*"]', "[" + '"*a",' * 20_000 + "]"), "the rule has 20000 proposers"),
        (RULE.replace('["*"]', '["' + "*a" * 500_000 + '"]'), "a pattern has at most 512 bytes"),
        (RULE + "sum = [" + "{}," * 20_000 + "]", "the rule has 20000 of `sum`"),
        (RULE + WHEN.replace("equals = 1", "one_of = [" + "1," * 20_000 + "]"), "`one_of` has 20000 constants"),
        (RULE + WHEN.replace("/a", "/" + "a" * 1_000_000), "a pointer has at most 256 bytes"),
        (RULE + WHEN.replace("/a", "/a" * 500_000), "a pointer has at most 256 bytes"),
        (RULE + WHEN.replace("= 1", "= '" + "x" * 1_000_000 + "'"), "a constant has at most 1024 bytes"),
        (
            RULE + WHEN.replace("= 1", "= { json = '" + "[" * 1_000_000 + "' }"),
            "the constant is not valid JSON: not valid JSON: nested deeper than 128",
        ),
        (RULE + WHEN.replace("= 1", "= { json = '[" + "1," * 20_000 + "1]' }"), "a constant has at most 1024 bytes"),
        (
            RULE + "[rule.when]\n" + "".join(f'"/m{at}" = {{ equals = 1 }}\n' for at in range(20_000)),
            "more than 64 members are named, or one inside of another",
        ),
        (
            RULE + "after = [{ kind = 'mcp/request:tools/call:t', to = 's', within = '1h', same = {"
            + ",".join(f'"/m{at}"="/m"' for at in range(20_000)) + "} }]",
            "too many members",
        ),
        (RULE + WHEN.replace("equals = 1", 'chars = "' + "a" * 1_000_000 + '-", length = [1, 65]'), "the length is out of bounds"),
        (
            RULE + WHEN.replace("equals = 1", 'shape = ["' + "A9" * 500_000 + '"], length = [1, 9]'),
            "a shape has runs `A`, `a` and `9`, and characters between them, as in `A-9`",
        ),
        (RULE + WHEN.replace("equals = 1", 'under = "' + "/a" * 500_000 + '"'), "a root has at most 32 segments"),
        (
            RULE + WHEN.replace("equals = 1", 'url = { origin = "https://' + "a." * 500_000 + '" }'),
            "an origin is a scheme, a host and perhaps a port in lower-case ASCII, as in `https://api.example.com`",
        ),
    ],
    ids=range(28),
)
def test_large_files(text: str, message: str) -> None:
    assert len(text) <= FILE_BYTES_MAX + 1
    assert fault(text).message == message


def test_the_longest_file_is_read() -> None:
    rest = FILE_BYTES_MAX - len(RULE)
    text = RULE + (PAD * 1024)[: rest - 1] + "\n"
    assert len(text) == FILE_BYTES_MAX
    assert RuleSet.parse(text).rules == RuleSet.parse(RULE).rules
