"""Spending of rules: uses, counted calls and answered calls, in memory."""

from __future__ import annotations

from bisect import insort
from collections import deque
from dataclasses import dataclass, field

from .decimals import Decimal
from .guards import AfterGuard
from .pointer import Pointer
from .rule import Rule
from .window import DAY_MS, WINDOW_MS_MAX, Window

CHARGES_MAX = 10_000
"""The most calls that are kept for one rule. One that has as many in its windows counts as full: its guards are broken."""
ANSWERED_MAX = 10_000
"""The most answered calls that are kept. The proposer that has most of them loses its oldest."""
REJECTED_MAX = 1_000
"""The last calls that are kept of those which rules in shadow would have rejected."""
_GUESTS = "anonymous-"
USED_UP = 2**32 - 1
"""The uses of a version before the latest one."""


@dataclass(frozen=True)
class Charge:
    """A call that a rule counts."""

    rule: Rule = field(repr=False)
    operation: str
    at_ms: int
    is_use: bool
    """Whether the rule decided it, which takes one use of its budget."""
    amounts: dict[Pointer, Decimal]
    """The members that the rule sums."""
    values: dict[Pointer, str]
    """The members by which the rule counts, each with its value as a careless reader takes it."""
    keep_ms: int


@dataclass(frozen=True)
class AnsweredCall:
    """A call that was answered without an error, for guards that ask for an earlier call."""

    operation: str
    proposer: str
    to: str
    method: str
    target: str
    values: dict[Pointer, str]
    at_ms: int

    @property
    def account(self) -> str:
        """The name in whose share it counts: one for all guests."""
        return _GUESTS if self.proposer.startswith(_GUESTS) else self.proposer


@dataclass
class _RuleSpent:
    """The spending of one rule."""

    version: int = 0
    uses: int = 0
    charges: deque[Charge] = field(default_factory=deque)
    """In the order of their times."""
    charged: set[str] = field(default_factory=set)
    full_until_ms: int = 0

    def charge(self, charge: Charge) -> None:
        if charge.operation in self.charged:
            return
        self.charged.add(charge.operation)
        if charge.rule.version > self.version:
            self.version, self.uses = charge.rule.version, 0
        if charge.is_use and charge.rule.version == self.version:
            self.uses += 1
        insort(self.charges, charge, key=lambda one: one.at_ms)
        while self.charges and charge.at_ms - self.charges[0].at_ms > max(self.charges[0].keep_ms, DAY_MS):
            self._drop_first()
        if len(self.charges) > CHARGES_MAX:
            first = self._drop_first()
            self.full_until_ms = max(self.full_until_ms, first.at_ms + first.keep_ms)

    def _drop_first(self) -> Charge:
        first = self.charges.popleft()
        self.charged.discard(first.operation)
        return first

    def give_back(self, operation: str) -> None:
        if operation not in self.charged:
            return
        self.charged.discard(operation)
        charge = next(one for one in self.charges if one.operation == operation)
        self.charges.remove(charge)
        if charge.is_use and charge.rule.version == self.version:
            self.uses -= 1


class Spent:
    """The spending of all rules of a set, since it was made: it is in memory alone, and begins with nothing after a restart."""

    def __init__(self) -> None:
        self._rules: dict[str, _RuleSpent] = {}
        self._answered: dict[int, AnsweredCall] = {}
        """By numbers in the order in which they came."""
        self._of_accounts: dict[str, deque[int]] = {}
        self._next = 0
        self._latest_ms = 0
        self._rejected: deque[tuple[str, int, str]] = deque(maxlen=REJECTED_MAX)
        """Calls that rules in shadow would have rejected."""

    def would_reject(self, rule: Rule, operation: str) -> None:
        """A rule in shadow would have rejected a call."""
        self._rejected.append((rule.id, rule.version, operation))

    def has_rejected(self, rule: Rule, operation: str) -> bool:
        """Whether a rule in shadow would have rejected a call, of the last ones."""
        return (rule.id, rule.version, operation) in self._rejected

    def charge(self, charge: Charge) -> None:
        """A rule counts a call: with the decision, before the call runs."""
        self._latest_ms = max(self._latest_ms, charge.at_ms)
        self._rules.setdefault(charge.rule.id, _RuleSpent()).charge(charge)

    def returned(self, operation: str) -> None:
        """A decision did not count: what it was charged is given back."""
        for spent in self._rules.values():
            spent.give_back(operation)

    def answered(self, call: AnsweredCall) -> None:
        """A call was answered without an error."""
        self._latest_ms = max(self._latest_ms, call.at_ms)
        if any(known.operation == call.operation and known.at_ms >= call.at_ms for known in self._answered.values()):
            return
        self._answered[self._next] = call
        self._of_accounts.setdefault(call.account, deque()).append(self._next)
        self._next += 1
        if len(self._answered) > ANSWERED_MAX:
            # Of two that have as many, the one with the older call.
            most = max(self._of_accounts.values(), key=lambda own: (len(own), -own[0]))
            self._drop(most[0])
        while self._answered:
            first = next(iter(self._answered))
            if call.at_ms - self._answered[first].at_ms <= WINDOW_MS_MAX:
                return
            self._drop(first)

    def _drop(self, number: int) -> None:
        account = self._answered.pop(number).account
        own = self._of_accounts[account]
        own.remove(number)
        if not own:
            del self._of_accounts[account]

    def not_before(self, at_ms: int) -> int:
        """This time, or the latest one that was seen, where a clock was set back."""
        return max(at_ms, self._latest_ms)

    def uses(self, rule: Rule) -> int:
        """The uses of one version of a rule. A version before the latest one is used up."""
        spent = self._rules.get(rule.id)
        if spent is None or spent.version < rule.version:
            return 0
        return spent.uses if spent.version == rule.version else USED_UP

    def is_full(self, rule: Rule, now_ms: int) -> bool:
        """Whether a rule counts more calls than are kept."""
        spent = self._rules.get(rule.id)
        return spent is not None and now_ms < spent.full_until_ms

    def in_window(self, rule: Rule, window: Window, now_ms: int, without: str) -> list[Charge]:
        """The calls that a rule counts in a window, without this one."""
        spent = self._rules.get(rule.id)
        found: list[Charge] = []
        for charge in reversed(spent.charges if spent else ()):
            if not window.has(charge.at_ms, now_ms):
                break
            if charge.operation != without:
                found.append(charge)
        return found

    def has_answered(self, guard: AfterGuard, proposer: str, same: dict[Pointer, str], now_ms: int) -> bool:
        """Whether a proposer made the call that a guard asks for, and had its answer in time."""
        return any(
            guard.within.has(call.at_ms, now_ms)
            and (call.proposer, call.to, call.method, call.target) == (proposer, guard.to, guard.method, guard.target)
            and all(call.values.get(pointer) == value for pointer, value in same.items())
            for call in self._answered.values()
        )
