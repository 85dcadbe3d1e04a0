"""Rules in force: which of them decides a call, what they count of it, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import spelling
from .arguments import Arguments
from .bounds import Bounds
from .call import RuledCall, Stage
from .judge import ExplainedCheck, Judge, kept_value
from .parse import parse_rules, why_no_rule
from .rule import DECISIONS, Decision, Rule
from .spent import AnsweredCall, Spent

_NO_END = 2**64


@dataclass(frozen=True)
class RuleAnswer:
    """The rule that decides a call. Its decision is the answer."""

    rule: Rule

    @property
    def decision(self) -> Decision:
        return self.rule.decision

    @property
    def name(self) -> str:
        """The rule and its version, for records."""
        return self.rule.name


@dataclass(frozen=True)
class RuleExplanation:
    """Why a rule decides a call, or does not."""

    rule: Rule
    acts: bool
    """Whether it decides the call, were it the only one, and not in shadow."""
    checks: tuple[ExplainedCheck, ...]
    """Every check with its result."""

    def __str__(self) -> str:
        if self.rule.shadow:
            does = f"is in shadow, and {'would decide' if self.acts else 'would not decide'} it ({self.rule.decision})"
        else:
            does = "decides it" if self.acts else f"does not decide it (it would {self.rule.decision})"
        return "\n".join([f"{self.rule.name} {does}", *(f"  {check}" for check in self.checks)])


class RuleSetError(ValueError):
    """Why rules make no set."""

    def __init__(self, rule: Rule, message: str) -> None:
        super().__init__(f"rule {spelling.line(str(rule.id))}: {message}")
        self.rule = rule
        """The first rule that the set cannot have."""


class RuleSet:
    """The rules that an orchestrator decides by in one topic, and what they have counted there: a program in two topics has two sets.
    Names of participants and servers, and all that is counted, mean something in their topic alone.

    Nothing that a call holds makes it raise: what cannot be read in one way only is unclear, and no rule approves it.

    Raises:
        RuleSetError: two of the rules have one id, they are too many, or one is none that a file could hold.
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        bounds = Bounds()
        for rule in rules:
            wrong = bounds.take(rule) or why_no_rule(rule)
            if wrong is not None:
                raise RuleSetError(rule, wrong)
        self._begin(rules)

    def _begin(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(sorted(rules, key=_order))
        """In the order in which they decide: reject, ask, then approve, of which the one goes first that ends first. Those in shadow last."""
        self.spent = Spent()

    @classmethod
    def parse(cls, text: str) -> RuleSet:
        """Reads a file of rules.

        Raises:
            RuleFileError: the first fault, with its place and what to write instead.
        """
        # Their number, ids and texts are checked already, with their places.
        read = cls.__new__(cls)
        read._begin(parse_rules(text))
        return read

    def decide(self, call: RuledCall, stage: Stage = "proposed") -> RuleAnswer | None:
        """The rule that decides a call, if one does. ``ask`` means for a proposal that it stays with people. A rule in shadow decides nothing.

        It counts nothing: :meth:`charge` does, with the decision.
        """
        for rule in self._of_kind(call):
            if not rule.shadow and (rule.tightens or stage == "proposed") and Judge(rule, call, self.spent).acts():
                return RuleAnswer(rule)
        return None

    def would_decide(self, call: RuledCall, stage: Stage = "proposed") -> list[RuleAnswer]:
        """The rules in shadow that would have decided a call, each as if it alone were in force beside the rules that are.

        It counts nothing: :meth:`note` does, for each proposal once.
        """
        shadows = [rule for rule in self._of_kind(call) if rule.shadow and (rule.tightens or stage == "proposed")]
        answer = self.decide(call, stage) if shadows else None
        before = None if answer is None else _precedence(answer.rule)
        placed = [rule for rule in shadows if before is None or _precedence(rule) < before]
        return [RuleAnswer(rule) for rule in placed if Judge(rule, call, self.spent).acts()]

    def note(self, call: RuledCall, would: Sequence[RuleAnswer]) -> None:
        """Counts what :meth:`would_decide` has found, as if these rules had decided: before :meth:`charge` of the call, whatever decides it."""
        for answer in would:
            if answer.decision == "approve":
                self.spent.charge(Judge(answer.rule, call, self.spent).charge(True))
            elif answer.decision == "reject":
                self.spent.would_reject(answer.rule, call.operation)

    def explain(self, call: RuledCall) -> list[RuleExplanation]:
        """Why each rule of a call's kind decides it, or does not."""
        judges = [(rule, Judge(rule, call, self.spent)) for rule in self._of_kind(call)]
        return [RuleExplanation(rule, judge.acts(), tuple(judge.explained())) for rule, judge in judges]

    def charge(self, call: RuledCall, by: RuleAnswer | None = None) -> None:
        """Counts a call that will run: before it runs, with the answer that approved it if a rule did."""
        charges = []
        for rule in self._of_kind(call):
            judge = Judge(rule, call, self.spent)
            is_use = by is not None and by.rule == rule
            # One in shadow counts nothing of a call that it would have rejected.
            is_left = not rule.shadow or not self.spent.has_rejected(rule, call.operation)
            if is_use or (rule.tightens and rule.guards.all() and is_left and judge.watches()):
                charges.append(judge.charge(is_use))
        # All of them before the first is counted: one that is may move the time at which the others look.
        for charge in charges:
            self.spent.charge(charge)

    def returned(self, operation: str) -> None:
        """A decision did not count, because the call was no longer pending: what it was charged is given back."""
        self.spent.returned(operation)

    def answered(self, call: RuledCall, at_ms: int | None = None) -> None:
        """A call was answered without an error, at this time: rules with ``after`` may ask for it."""
        kind, read = call.parts, call.read
        if kind is None or kind.method is None or kind.context is None or not isinstance(read, Arguments):
            return
        guards = [
            guard
            for rule in self.rules
            for guard in rule.guards.after
            if (guard.method, guard.target, guard.to) == (kind.method, kind.context, call.to)
        ]
        if not guards:
            return
        members = {there for guard in guards for _, there in guard.same}
        kept = {member: kept_value(read.get(member)) for member in members if not read.has_another_like(member)}
        values = {member: value.raw for member, value in kept.items() if value is not None and value.is_sure}
        at = call.at_ms if at_ms is None else at_ms
        self.spent.answered(AnsweredCall(call.operation, call.proposer, call.to, kind.method, kind.context, values, at))

    def _of_kind(self, call: RuledCall) -> list[Rule]:
        """The rules of a kind of call, in the order in which they decide."""
        kind = call.parts
        if kind is None:
            return []
        return [rule for rule in self.rules if rule.method == kind.method and rule.target in (None, kind.context)]


def _order(rule: Rule) -> tuple[bool, tuple[int, int, str, int]]:
    return rule.shadow, _precedence(rule)


def _precedence(rule: Rule) -> tuple[int, int, str, int]:
    expires_ms = _NO_END if rule.expires_ms is None else rule.expires_ms
    return DECISIONS.index(rule.decision), expires_ms, rule.id, rule.version
