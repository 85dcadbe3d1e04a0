"""Tests of one value: the kinds of conditions that a rule has for a member."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from . import canonical, spelling
from .canonical import Node
from .characters import CharSet, fit_shape
from .constant import Constant, type_of
from .decimals import Decimal, Spelled, spelled
from .fit import Fit, all_of, fit_of, one_of
from .places import PathRoot, UrlRoot

CONSTANTS_MAX = 8
"""The most constants of one test."""
SHAPES_MAX = 3
"""The most shapes of one test."""


class ValueTest(Protocol):
    """The test of one value."""

    def fit(self, node: Node) -> Fit:
        """Fit of a value to the test."""

    def words(self) -> str:
        """The test in words, to follow the name of a member."""

    @property
    def is_for_approval(self) -> bool:
        """Whether an approving rule may have the test."""


class _Exact:
    is_for_approval = True


class _Like:
    is_for_approval = False


@dataclass(frozen=True)
class CountRange:
    """A range of counts; both ends belong to it."""

    low: int
    high: int

    def has(self, count: int) -> bool:
        """Whether a count lies in it."""
        return self.low <= count <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


def _on_text(node: Node, fit: Callable[[str], Fit]) -> Fit:
    text = canonical.text_of(node.raw)
    return Fit.UNCLEAR if text is None else fit(text)


@dataclass(frozen=True)
class OneOf(_Exact):
    """Canonical text equal to one of these constants, sorted."""

    constants: tuple[Constant, ...]

    def fit(self, node: Node) -> Fit:
        equal = [one for one in self.constants if one.raw == node.raw]
        if equal:
            return Fit.HELD if equal[0].is_sure else Fit.UNCLEAR
        return Fit.UNCLEAR if any(_reads_like(one.node, node) for one in self.constants) else Fit.FAILED

    def words(self) -> str:
        return f"is {spelling.either([str(one) for one in self.constants])}"


@dataclass(frozen=True)
class Numbers(_Exact):
    """A number in this range, with or without a fraction."""

    low: Decimal
    high: Decimal
    is_whole: bool

    def fit(self, node: Node) -> Fit:
        if type_of(node.raw) != "number":
            return Fit.UNCLEAR
        number = spelled(node.raw)
        if number.exact is None:
            return Fit.UNCLEAR
        fit = fit_of(self.low.scaled <= number.exact.scaled <= self.high.scaled)
        return max(fit, Fit.UNCLEAR) if number.is_fraction == self.is_whole else fit

    def words(self) -> str:
        if not self.is_whole:
            return f"is a number with a fraction from {self.low.with_fraction()} to {self.high.with_fraction()}"
        return f"is {self.low}" if self.low == self.high else f"is a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class Under(_Exact):
    """A path under this root."""

    root: PathRoot

    def fit(self, node: Node) -> Fit:
        return _on_text(node, self.root.fit)

    def words(self) -> str:
        return f"is a path under {spelling.quoted(str(self.root))}"


@dataclass(frozen=True)
class Url(_Exact):
    """A URL of this root."""

    root: UrlRoot

    def fit(self, node: Node) -> Fit:
        return _on_text(node, self.root.fit)

    def words(self) -> str:
        query = f" with the query members {', '.join(self.root.query)}" if self.root.query else " without a query"
        return f"is a URL under {spelling.quoted(str(self.root))}{query}"


@dataclass(frozen=True)
class Chars(_Exact):
    """A text of these characters, so many."""

    symbols: CharSet
    length: CountRange

    def fit(self, node: Node) -> Fit:
        return _on_text(node, lambda text: max(self.symbols.fit(text), fit_of(self.length.has(len(text)))))

    def words(self) -> str:
        return f"is {self.length} characters of {spelling.quoted(str(self.symbols))}"


@dataclass(frozen=True)
class Shapes(_Exact):
    """A text of one of these shapes, sorted, with so many characters."""

    shapes: tuple[str, ...]
    length: CountRange

    def fit(self, node: Node) -> Fit:
        return _on_text(node, lambda text: max(fit_shape(self.shapes, text), fit_of(self.length.has(len(text)))))

    def words(self) -> str:
        return f"is {self.length} characters of the shape {' or '.join(map(spelling.quoted, self.shapes))}"


@dataclass(frozen=True)
class Each:
    """An array of so many elements, each of which satisfies the test, if there is one."""

    count: CountRange
    each: ValueTest | None

    @property
    def is_for_approval(self) -> bool:
        return self.count.high == 0 if self.each is None else self.each.is_for_approval

    def fit(self, node: Node) -> Fit:
        if node.elements is None:
            return Fit.UNCLEAR
        each = self.each
        fits = [] if each is None else [each.fit(element) for element in node.elements]
        return max(fit_of(self.count.has(len(node.elements))), all_of(fits))

    def words(self) -> str:
        each = "" if self.each is None else f", each of which {self.each.words()}"
        return f"has {self.count} elements{each}"


@dataclass(frozen=True)
class Absent(_Exact):
    """The member is not there."""

    def fit(self, node: Node) -> Fit:
        return Fit.FAILED

    def words(self) -> str:
        return "is absent"


@dataclass(frozen=True)
class OfType(_Like):
    """A value of this type."""

    type: str

    def fit(self, node: Node) -> Fit:
        found = type_of(node.raw)
        if found == self.type:
            return Fit.HELD
        return Fit.UNCLEAR if "string" in (found, self.type) else Fit.FAILED

    def words(self) -> str:
        return f"is of type {self.type}"


@dataclass(frozen=True)
class Length(_Like):
    """A text of so many characters."""

    length: CountRange

    def fit(self, node: Node) -> Fit:
        return _on_text(node, lambda text: fit_of(self.length.has(len(text))))

    def words(self) -> str:
        return f"is a text of {self.length} characters"


@dataclass(frozen=True)
class Some(_Like):
    """An array of which one element satisfies the test."""

    some: ValueTest

    def fit(self, node: Node) -> Fit:
        if node.elements is None:
            return max(self.some.fit(node), Fit.UNCLEAR)
        return one_of(self.some.fit(element) for element in node.elements)

    def words(self) -> str:
        return f"has an element that {self.some.words()}"


def _number_in(node: Node) -> Spelled | None:
    """The number that a value spells, or that a text of it may be converted to."""
    if type_of(node.raw) == "number":
        return spelled(node.raw)
    text = (canonical.text_of(node.raw) or "").strip(spelling.WHITE)
    return spelled(text) if text.startswith(tuple("-0123456789")) else None


def _reads_like(own: Node, other: Node) -> bool:
    """Whether some reader may take one value for another one."""
    number, others_number = _number_in(own), _number_in(other)
    kind, others_kind = type_of(own.raw), type_of(other.raw)
    if number is not None and others_number is not None:
        if number.exact is not None and others_number.exact is not None:
            return number.exact == others_number.exact
        return not kind == others_kind == "string" or _looks_like(own, other)
    if {"array", "object"} & {kind, others_kind}:
        return kind != others_kind or kind == "object"
    return _looks_like(own, other)


def _looks_like(own: Node, other: Node) -> bool:
    return spelling.may_look_alike(_likeness(own), _likeness(other))


def _likeness(node: Node) -> str | None:
    """A value as a careless reader sees it."""
    text = canonical.text_of(node.raw)
    if text is not None:
        return spelling.likeness(text)
    return "" if node.raw == "null" else node.raw


ANY = "\x00any"
"""The key of a value that may look like any other one."""
ACCENTED = "\x00accented"
"""The key of values with accents, which may look like each other."""


def counted_as(value: Constant) -> str:
    """A value as calls are counted by it: equal for all that some reader takes for each other, or may take as far as is known."""
    number = _number_in(value.node)
    if number is not None and number.exact is not None:
        return str(number.exact)
    read = _likeness(value.node)
    if read is None:
        return ANY
    return read if read.isascii() else ACCENTED
