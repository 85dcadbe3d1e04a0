"""A rule in one English sentence: the text that a person is asked to agree to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .spelling import either, named, quoted
from .window import day_and_time

if TYPE_CHECKING:
    from .rule import Rule

_PLAIN_METHOD = re.compile("[A-Za-z0-9/_-]*")


def rule_sentence(rule: Rule) -> str:
    """The rule in one sentence, which names every condition and every limit."""
    who = either(["any participant" if one == "*" else named(one) for one in rule.proposers])
    calls = _calls(rule)
    if rule.decision == "approve":
        subject = f"{who} may call {calls}"
    elif rule.decision == "ask":
        subject = f"{who} must ask a person before calling {calls}"
    else:
        subject = f"no participant may call {calls}" if "*" in rule.proposers else f"{who} may not call {calls}"
    shadow = "in shadow, where it decides nothing: " if rule.shadow else ""
    parts = [shadow + subject + _conditions(rule), _guards(rule), _limits(rule), f"on {named(rule.author)}'s authority"]
    return "; ".join(part for part in parts if part) + "."


def _calls(rule: Rule) -> str:
    method = rule.method if _PLAIN_METHOD.fullmatch(rule.method) else quoted(rule.method)
    if rule.target is None:
        what = f"anything by {method}"
    else:
        what = named(rule.target) if rule.method == "tools/call" else f"{method} {named(rule.target)}"
    return f"{what} of {'any server' if rule.to is None else named(rule.to)}"


def _conditions(rule: Rule) -> str:
    tests = ", ".join(f"{pointer.words()} {test.words()}" for pointer, test in rule.when)
    if rule.tightens:
        return f" when {tests}, by any reading" if tests else ""
    return f" when {tests}, as written, and nothing else is given" if tests else " without arguments"


def _guards(rule: Rule) -> str:
    guards = " and ".join(guard.words() for guard in rule.guards.all())
    return f"{'unless' if rule.tightens else 'only while'} {guards}" if guards else ""


def _uses(uses: int | None) -> str:
    if uses is None:
        return ""
    return "once at most" if uses == 1 else f"at most {uses} times"


def _limits(rule: Rule) -> str:
    limits = [
        _uses(rule.uses),
        "" if rule.during is None else rule.during.words(),
        "" if rule.expires_ms is None else f"until {day_and_time(rule.expires_ms)}",
        "although the tool may destroy data" if rule.destructive else "",
    ]
    return ", ".join(limit for limit in limits if limit)
