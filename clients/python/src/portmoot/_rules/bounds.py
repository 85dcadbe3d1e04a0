"""Bounds of a set of rules: how many it has, of one tool too, and an id for each."""

from __future__ import annotations

from collections import Counter

from .rule import Rule

RULES_MAX = 256
"""The most rules of one set."""
TOOL_RULES_MAX = 32
"""The most rules of one tool."""


class Bounds:
    """The rules of one set, counted as they come."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._of_tools: Counter[tuple[str, str | None]] = Counter()

    def take(self, rule: Rule) -> str | None:
        """Counts one more rule. Why the set cannot have it, if it cannot."""
        self._of_tools[rule.kind, rule.to] += 1
        if len(self._ids) == RULES_MAX:
            return f"more than {RULES_MAX} rules"
        if self._of_tools[rule.kind, rule.to] > TOOL_RULES_MAX:
            return f"more than {TOOL_RULES_MAX} rules of one tool"
        if rule.id in self._ids:
            return "the id is taken by a rule above"
        self._ids.add(rule.id)
        return None
