"""Rule on the arguments of calls: scope, conditions, guards and limits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from .._capability import _matches
from .._kind import REQUEST
from .guards import Guards
from .pointer import Pointer
from .printed import rule_text
from .sentence import rule_sentence
from .values import ValueTest
from .window import WeekHours

Decision = Literal["reject", "ask", "approve"]
"""The decision of a rule; those that go before others first."""
DECISIONS: tuple[Decision, ...] = ("reject", "ask", "approve")


@dataclass(frozen=True)
class Rule:
    """One version of a rule."""

    id: str
    version: int
    author: str
    """The person on whose authority the rule decides; never a proposer of an approving rule."""
    decision: Decision
    method: str
    target: str | None
    """The tool, prompt or URI; ``None``, of a rule that rejects or asks, for all of them."""
    to: str | None
    """The participant that runs the call; ``None``, of a rule that rejects or asks, for all of them."""
    proposers: tuple[str, ...]
    """Exact names, or, where the rule rejects or asks, patterns."""
    definition: str | None
    """Digest of the target's definition."""
    server: str | None
    """Digest of the server's configured command or URL."""
    when: tuple[tuple[Pointer, ValueTest], ...]
    """The tests of the arguments, in the order of their pointers."""
    guards: Guards
    during: WeekHours | None
    expires_ms: int | None
    uses: int | None
    destructive: bool
    shadow: bool = False
    """Whether it decides nothing: what it would have decided is said beside what really happens."""

    @property
    def name(self) -> str:
        """Id and version, such as ``r12.3``."""
        return f"{self.id}.{self.version}"

    @property
    def tightens(self) -> bool:
        """Whether it only takes: what is ambiguous then counts as covered."""
        return self.decision != "approve"

    @property
    def kind(self) -> str:
        """The kind of its calls."""
        return f"{REQUEST}:{self.method}" if self.target is None else f"{REQUEST}:{self.method}:{self.target}"

    @cached_property
    def text(self) -> str:
        """The canonical text, a ``[[rule]]`` of TOML, which reads as the same rule."""
        return rule_text(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical text."""
        return hashlib.sha256(b"portmoot/rule/1\0" + self.text.encode()).hexdigest()

    @cached_property
    def sentence(self) -> str:
        """The rule in one sentence."""
        return rule_sentence(self)

    def has_proposer(self, name: str) -> bool:
        """Whether a participant is among the proposers."""
        return any(_matches(pattern, name) for pattern in self.proposers)

    def names(self, pointer: Pointer) -> bool:
        """Whether its conditions name a member."""
        return any(known == pointer for known, _ in self.when)
