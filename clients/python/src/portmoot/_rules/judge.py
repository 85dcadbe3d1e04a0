"""One rule before one call: every check in order, and whether the rule decides the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import canonical, names, spelling
from .arguments import Arguments, ArgumentsError
from .call import RuledCall
from .canonical import Node
from .constant import Constant, ConstantError
from .decimals import Decimal, spelled
from .fit import Fit, fit_of
from .guards import AfterGuard, CountGuard, RateGuard, SumGuard
from .pointer import Pointer
from .rule import Rule
from .spent import Charge, Spent
from .values import ANY, Absent, ValueTest, counted_as
from .window import Window, time

SHOWN_CHARS_MAX = 200
"""The longest value that an explanation shows, in characters."""


@dataclass(frozen=True)
class ExplainedCheck:
    """A check with its result in words."""

    asked: str
    """The demand of the rule, such as ``repo is "acme/site"``."""
    found: str
    """The state of the call, such as ``repo is "acme/docs"``."""
    fit: Fit
    """Whether it holds."""
    is_guard: bool
    """Whether it is a guard: what a rule that rejects or asks waits for to break."""

    def __str__(self) -> str:
        return spelling.line(f"{self.fit.word:<8} {self.asked}: {self.found}")


@dataclass(frozen=True)
class _Check:
    asked: str
    found: Callable[[], str]
    fit: Callable[[], Fit]
    is_guard: bool = False

    def explained(self) -> ExplainedCheck:
        return ExplainedCheck(self.asked, self.found(), self.fit(), self.is_guard)


class Judge:
    """A rule that is to judge a call of its kind."""

    def __init__(self, rule: Rule, call: RuledCall, spent: Spent) -> None:
        self._rule, self._call, self._spent = rule, call, spent
        self._now_ms = spent.not_before(call.at_ms)

    def acts(self) -> bool:
        """Whether the rule decides the call."""
        if not self._rule.tightens:
            return all(check.fit() == Fit.HELD for check in (*self._conditions(), *self._guards()))
        guards = self._guards()
        return self.watches() and (not guards or any(check.fit() != Fit.HELD for check in guards))

    def watches(self) -> bool:
        """Whether the call is one that the rule looks at, whatever its guards say."""
        return all(check.fit() != Fit.FAILED for check in self._conditions())

    def explained(self) -> list[ExplainedCheck]:
        """All checks in words."""
        return [check.explained() for check in (*self._conditions(), *self._guards())]

    def charge(self, is_use: bool) -> Charge:
        """The call as the rule counts it."""
        guards = self._rule.guards
        amounts = {total.of: self._amount(total.of) for total in guards.sums}
        values = {count.same: self._value(count.same) for count in guards.counts}
        return Charge(
            self._rule,
            self._call.operation,
            self._now_ms,
            is_use,
            {pointer: amount for pointer, amount in amounts.items() if amount is not None},
            {pointer: value for pointer, value in values.items() if value is not None},
            guards.longest_ms(),
        )

    def _conditions(self) -> list[_Check]:
        """All checks but those of guards."""
        rule, call, now = self._rule, self._call, time(self._now_ms)
        ends = "it has no end" if rule.expires_ms is None else f"it is before {time(rule.expires_ms)}"
        is_over = rule.expires_ms is not None and rule.expires_ms <= self._now_ms
        checks = [
            self._plain(
                f"the proposer is {' or '.join(rule.proposers)}",
                f"it is {call.proposer}",
                self._named(rule.has_proposer(call.proposer), call.proposer),
            ),
            self._plain(
                f"{rule.to} runs it" if rule.to is not None else "any server runs it",
                f"it is {call.to}",
                self._named(rule.to is None or rule.to == call.to, call.to),
            ),
            self._plain(ends, f"it is {now}", fit_of(not is_over)),
        ]
        if rule.during is not None:
            checks.append(self._plain(rule.during.words(), f"it is {now}", fit_of(rule.during.has(self._now_ms))))
        if not rule.tightens:
            checks += self._of_approval()
        return checks + [self._member(pointer, test) for pointer, test in rule.when]

    @staticmethod
    def _plain(asked: str, found: str, fit: Fit) -> _Check:
        return _Check(asked, lambda: found, lambda: fit)

    def _named(self, is_equal: bool, name: str) -> Fit:
        """Fit of a name. An approving rule is not about one of which it is not known whether it looks like another one."""
        is_unsure = is_equal and not self._rule.tightens and not names.is_sure(name)
        return Fit.UNCLEAR if is_unsure else fit_of(is_equal)

    def _of_approval(self) -> list[_Check]:
        rule, call = self._rule, self._call
        used, most = self._spent.uses(rule), rule.uses or 0
        has_definition = rule.definition is not None and rule.definition == call.definition
        has_server = rule.server is not None and rule.server == call.server
        beside = ", ".join(spelling.named(name) for name in call.beside) or "nothing is"
        read = call.read
        return [
            self._plain(
                f"the proposer is not {rule.author}, the author", f"it is {call.proposer}", fit_of(call.proposer != rule.author)
            ),
            self._plain(
                "the definition is the one that was accepted", "it is" if has_definition else "it changed", fit_of(has_definition)
            ),
            self._plain("the server is configured as it was", "it is" if has_server else "it changed", fit_of(has_server)),
            self._plain(f"used less than {most} times", f"used {used} times", fit_of(used < most)),
            self._plain(
                "every reader reads the arguments alike",
                "they do" if isinstance(read, Arguments) else str(read),
                Fit.HELD if isinstance(read, Arguments) else Fit.UNCLEAR,
            ),
            self._plain("nothing is given beside the arguments", beside, fit_of(not call.beside)),
            self._closed(read),
        ]

    def _closed(self, read: Arguments | ArgumentsError) -> _Check:
        asked = "no other member is given"
        if not isinstance(read, Arguments):
            return self._plain(asked, str(read), Fit.UNCLEAR)
        unnamed = next((leaf for leaf in read.leaves if not self._rule.names(leaf)), None)
        return self._plain(asked, "none is" if unnamed is None else f"{unnamed.words()} is", fit_of(unnamed is None))

    def _member(self, pointer: Pointer, test: ValueTest) -> _Check:
        return _Check(
            f"{pointer.words()} {test.words()}", lambda: self._found_member(pointer), lambda: self._fit_member(pointer, test)
        )

    def _fit_member(self, pointer: Pointer, test: ValueTest) -> Fit:
        read = self._call.read
        if not isinstance(read, Arguments):
            return Fit.UNCLEAR
        node = read.get(pointer)
        if node is None:
            return Fit.UNCLEAR if read.has_another_like(pointer) else fit_of(isinstance(test, Absent))
        fit = test.fit(node)
        if fit == Fit.FAILED and self._rule.tightens and read.has_another_like(pointer):
            return Fit.UNCLEAR
        return fit

    def _found_member(self, pointer: Pointer) -> str:
        read = self._call.read
        if not isinstance(read, Arguments):
            return str(read)
        node = read.get(pointer)
        return f"{pointer.words()} is {'absent' if node is None else shown(node)}"

    def _guards(self) -> list[_Check]:
        checks = []
        for guard in self._rule.guards.all():
            match guard:
                case RateGuard():
                    checks.append(self._rate(guard))
                case SumGuard():
                    checks.append(self._sum(guard))
                case CountGuard():
                    checks.append(self._count(guard))
                case AfterGuard():
                    checks.append(self._after(guard))
        return checks

    def _counted(self, window: Window) -> list[Charge]:
        return self._spent.in_window(self._rule, window, self._now_ms, self._call.operation)

    def _is_full(self) -> bool:
        return self._spent.is_full(self._rule, self._now_ms)

    def _rate(self, rate: RateGuard) -> _Check:
        counted = len(self._counted(rate.within))
        fit = fit_of(not self._is_full() and counted < rate.max)
        return _Check(rate.words(), lambda: f"{counted} calls before", lambda: fit, True)

    def _sum(self, total: SumGuard) -> _Check:
        def fit() -> Fit:
            own = self._amount(total.of)
            if own is None or self._is_read_otherwise(total.of):
                return Fit.UNCLEAR
            amounts = [charge.amounts[total.of].scaled for charge in self._counted(total.within) if total.of in charge.amounts]
            return fit_of(not self._is_full() and sum(amounts) + own.scaled <= total.max.scaled)

        return _Check(total.words(), lambda: self._found_member(total.of), fit, True)

    def _count(self, count: CountGuard) -> _Check:
        def fit() -> Fit:
            own = self._value(count.same)
            if own is None or self._is_read_otherwise(count.same):
                return Fit.UNCLEAR
            others = [charge.values[count.same] for charge in self._counted(count.within) if count.same in charge.values]
            same = sum(1 for other in others if other == own or ANY in (other, own))
            return fit_of(not self._is_full() and same < count.max)

        return _Check(count.words(), lambda: self._found_member(count.same), fit, True)

    def _after(self, after: AfterGuard) -> _Check:
        fit = self._fit_after(after)
        return _Check(after.words(), lambda: "it was" if fit == Fit.HELD else "it was not", lambda: fit, True)

    def _fit_after(self, after: AfterGuard) -> Fit:
        read = self._call.read
        if not isinstance(read, Arguments):
            return Fit.UNCLEAR
        same: list[tuple[Pointer, str]] = []
        for here, there in after.same:
            node = read.get(here)
            if node is None:
                return Fit.FAILED
            if self._is_read_otherwise(here):
                return Fit.UNCLEAR
            same.append((there, node.raw))
        asked = dict(same)
        if any(asked[there] != value for there, value in same):
            return Fit.FAILED
        return fit_of(self._spent.has_answered(after, self._call.proposer, asked, self._now_ms))

    def _is_read_otherwise(self, pointer: Pointer) -> bool:
        read = self._call.read
        return isinstance(read, Arguments) and read.has_another_like(pointer)

    def _amount(self, pointer: Pointer) -> Decimal | None:
        """The number at a member, if it can be summed: exact and not negative."""
        node = self._node(pointer)
        exact = None if node is None else spelled(node.raw).exact
        return exact if exact is not None and exact.mantissa >= 0 else None

    def _value(self, pointer: Pointer) -> str | None:
        """The value at a member as calls are counted by it, if it is short and plain enough to be kept."""
        kept = kept_value(self._node(pointer))
        if kept is None:
            return None
        return counted_as(kept) if kept.is_sure else ANY

    def _node(self, pointer: Pointer) -> Node | None:
        read = self._call.read
        return read.get(pointer) if isinstance(read, Arguments) else None


def kept_value(node: Node | None) -> Constant | None:
    """A value as a constant, if it can be one."""
    try:
        return None if node is None else Constant.of_node(node)
    except ConstantError:
        return None


def shown(node: Node) -> str:
    """A value for people: hidden characters visible, and cut with the number of characters that were left out."""
    visible = canonical.shown(node.raw)
    more = len(visible) - SHOWN_CHARS_MAX
    return visible if more <= 0 else f"{visible[:SHOWN_CHARS_MAX]}... ({more} more characters)"
