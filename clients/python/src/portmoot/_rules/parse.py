"""Files of rules: reading, with errors that name the place and the remedy."""

from __future__ import annotations

import re

from .._json import is_text
from .._kind import REQUEST, Kind
from . import names, toml
from .bounds import Bounds
from .conditions import conditions
from .guard_tables import count_of_calls, guards
from .reader import ItemReader, RuleFileError, TableReader
from .rule import DECISIONS, Decision, Rule
from .toml import TomlError
from .window import WeekHours, read_time

FILE_BYTES_MAX = 1024 * 1024
"""The longest file of rules, in bytes."""
PROPOSERS_MAX = 16
"""The most names or patterns of proposers of one rule."""
_KEYS = (
    *("id", "version", "author", "decision", "kind", "to", "proposers", "definition", "server", "expires", "uses", "rate", "during"),
    *("destructive", "shadow", "sum", "count", "after", "when"),
)
_ID = re.compile("[A-Za-z0-9_-]{1,64}")
_DIGEST = re.compile("[0-9A-Fa-f]{64}")
_OF_APPROVAL = ("definition", "server", "uses", "destructive")


def parse_rules(text: str) -> list[Rule]:
    """Reads a file of rules, in the order in which they stand there.

    Raises:
        RuleFileError: the first fault, with its place and what to write instead.
    """
    if not is_text(text):
        raise RuleFileError(text, 0, "the file has half a surrogate pair", "write it in UTF-8")
    if len(text.encode()) > FILE_BYTES_MAX:
        raise RuleFileError(text, 0, f"the file is longer than {FILE_BYTES_MAX} bytes", "remove rules that have ended")
    try:
        file = TableReader(text, toml.parse(text), 0)
    except TomlError as error:
        raise RuleFileError(text, error.at, str(error), "write TOML") from None
    file.known(["rule"])
    found = file.get("rule")
    rules: list[Rule] = []
    bounds = Bounds()
    for item in found.list() if found else []:
        rule = _rule(item.table())
        wrong = bounds.take(rule)
        if wrong is not None:
            fault = item.error(wrong, "merge rules, or remove one")
            fault.rule = rule.id
            raise fault
        rules.append(rule)
    return rules


def why_no_rule(rule: Rule) -> str | None:
    """Why no file could hold a rule that a program made, or why its text, which people accept, does not say all of it."""
    try:
        read = parse_rules(rule.text)
    except RuleFileError as error:
        return error.message
    except (TypeError, AttributeError, ValueError) as error:
        return f"its text cannot be written: {error}"
    return None if read == [rule] else "its text says something else"


def _id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise ValueError("the id of a rule has 1 to 64 letters, digits, `_` and `-`, as in `r12`")
    return text


def _decision(name: str) -> Decision:
    for decision in DECISIONS:
        if decision == name:
            return decision
    raise ValueError("there is no such decision")


def _digest(text: str) -> str:
    if not _DIGEST.fullmatch(text):
        raise ValueError("a digest has 64 hexadecimal digits")
    return text.lower()


def _rule(table: TableReader) -> Rule:
    id = table.required("id", 'write an id such as `id = "r12"`').parsed(_id, 'an id such as "r12"')
    try:
        return _rule_of(id, table)
    except RuleFileError as error:
        error.rule = id
        raise


def _rule_of(id: str, table: TableReader) -> Rule:
    table.known(_KEYS)
    item = table.get("version")
    version = 1 if item is None else _count_from_one(item)
    author = _participant(table.required("author", "write the person on whose authority it decides"))
    item = table.required("decision", "write `approve`, `reject` or `ask`")
    decision = item.parsed(_decision, '"approve", "reject" or "ask"')
    approves = decision == "approve"
    if not approves:
        _refuse_keys(table)
    kind = _kind(table, approves)
    to = table.get("to")
    addressee = None if to is None else _participant(to)
    digests: dict[str, str] = {}
    if approves:
        table.required("to", "write the server that runs the call")
        for key in ("definition", "server"):
            item = table.required(key, "write the 64 digits that `portmoot rules` shows")
            digests[key] = item.parsed(_digest, "64 hexadecimal digits")
    proposers = _proposers(table, approves, author)
    uses, during, destructive = table.get("uses"), table.get("during"), table.get("destructive")
    uses_max = None if uses is None else count_of_calls(uses)
    is_destructive = destructive is not None and destructive.flag()
    shadow = table.get("shadow")
    is_shadow = shadow is not None and shadow.flag()
    when = conditions(table.get("when"), approves)
    guarded = guards(table)
    hours = None if during is None else during.parsed(WeekHours.parse, 'hours such as "Mon-Fri 06:00-18:00 UTC"')
    expires = table.get("expires")
    rule = Rule(
        id=id,
        version=version,
        author=author,
        decision=decision,
        method=kind.method or "",
        target=kind.context,
        to=addressee,
        proposers=proposers,
        definition=digests.get("definition"),
        server=digests.get("server"),
        when=when,
        guards=guarded,
        during=hours,
        expires_ms=None if expires is None else _time(expires),
        uses=uses_max,
        destructive=is_destructive,
        shadow=is_shadow,
    )
    if approves:
        table.required("uses", "write how often it may decide before its author looks again")
        table.required("expires", "write its end, at most 30 days from now")
    return rule


def _refuse_keys(table: TableReader) -> None:
    """Refuses the keys that only approving rules have."""
    for key in _OF_APPROVAL:
        item = table.get(key)
        if item is not None:
            raise item.key_error(f"`{key}` would end a rule that only rejects or asks", "leave it out")


def _kind(table: TableReader, approves: bool) -> Kind:
    example = f'a kind such as "{REQUEST}:tools/call:create_issue"'
    item = table.required("kind", "write the calls that it looks at")
    kind = item.parsed(Kind.parse, example)
    if kind.head != REQUEST:
        raise item.error("a rule is about requests", f"write {example}")
    if kind.context is not None and "*" in kind.context:
        raise item.error("`*` is no wildcard here", "name one tool, or, where the rule rejects or asks, none for all of them")
    if kind.context is None and approves:
        raise item.error("an approving rule names one tool", f"write {example}")
    return kind


def _proposers(table: TableReader, approves: bool, author: str) -> tuple[str, ...]:
    listed = table.required("proposers", 'write `proposers = ["scout"]`')
    patterns: list[str] = []
    for item in listed.some(PROPOSERS_MAX, "the rule has {} proposers"):
        pattern = item.parsed(names.pattern, "the name of a participant")
        if approves:
            name = _participant(item)
            if "*" in name:
                raise item.error("an approving rule names its proposers", "write exact names, each with evidence of its own")
            if name == author:
                raise item.error("a rule never decides its author's own proposals", "write other proposers")
        if pattern in patterns:
            raise item.error("the proposer stands there twice", "write it once")
        patterns.append(pattern)
    return tuple(patterns)


def _participant(item: ItemReader) -> str:
    return item.parsed(names.participant, "the name of a participant")


def _count_from_one(item: ItemReader) -> int:
    count = item.count()
    if count == 0:
        raise item.error("versions begin at 1", "write 1 or more")
    return count


def _time(item: ItemReader) -> int:
    at_ms = read_time(item.text_or_date())
    if at_ms is None:
        raise item.error("this is no time with an offset, in whole seconds", 'write a time such as "2026-12-06T09:00:00Z"')
    return at_ms
