"""Guards as rules write them: rate, sums, counts and earlier calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .._kind import REQUEST, Kind
from . import names
from .guards import GUARDS_MAX, SAME_MEMBERS_MAX, USES_MAX, AfterGuard, CountGuard, Guards, RateGuard, SumGuard
from .pointer import Pointer
from .reader import ItemReader, TableReader
from .window import Window

_T = TypeVar("_T")


def guards(rule: TableReader) -> Guards:
    """Reads the guards of a rule."""
    rate = rule.get("rate")
    return Guards(
        rate=None if rate is None else rate.parsed(RateGuard.parse, 'a rate such as "12/h"'),
        sums=_each(rule, "sum", _sum),
        counts=_each(rule, "count", _count),
        after=_each(rule, "after", _after),
    )


def _each(rule: TableReader, key: str, read: Callable[[TableReader], _T]) -> tuple[_T, ...]:
    item = rule.get(key)
    items = [] if item is None else item.list()
    if item is not None and len(items) > GUARDS_MAX:
        raise item.key_error(f"the rule has {len(items)} of `{key}`", f"write at most {GUARDS_MAX}")
    return tuple(read(item.table()) for item in items)


def _sum(table: TableReader) -> SumGuard:
    table.known(["of", "max", "within"])
    item = table.required("max", "write the highest sum")
    highest = item.decimal()
    if highest.mantissa < 0:
        raise item.error("a sum is not negative", "write 0 or more")
    of = _pointer(table.required("of", 'write the member, as in `of = "/amount"`'))
    return SumGuard(of, highest, _window(table))


def _count(table: TableReader) -> CountGuard:
    table.known(["same", "max", "within"])
    item = table.required("max", "write the most calls")
    same = _pointer(table.required("same", 'write the member, as in `same = "/to"`'))
    return CountGuard(same, count_of_calls(item), _window(table))


def _after(table: TableReader) -> AfterGuard:
    table.known(["kind", "to", "same", "within"])
    item = table.required("kind", "write the kind of the earlier call")
    example = f'a kind such as "{REQUEST}:tools/call:get_invoice"'
    kind = item.parsed(Kind.parse, example)
    if kind.head != REQUEST or kind.method is None or kind.context is None:
        raise item.error("the earlier call is no request with a target", f"write {example}")
    to = table.required("to", "write the server of the earlier call")
    listed = table.get("same")
    same: list[tuple[Pointer, Pointer]] = []
    for pair in [] if listed is None else listed.table().items():
        same.append((pair.key_pointer("write a member of this call"), _pointer(pair)))
    if listed is not None and len(same) > SAME_MEMBERS_MAX:
        raise listed.error("too many members", f"write at most {SAME_MEMBERS_MAX}")
    same.sort()
    return AfterGuard(kind.method, kind.context, to.parsed(names.participant, "the name of a server"), tuple(same), _window(table))


def _pointer(item: ItemReader) -> Pointer:
    return item.parsed(Pointer.parse, 'a JSON Pointer such as "/amount"')


def _window(table: TableReader) -> Window:
    within = table.required("within", 'write a window such as `within = "1d"`')
    return within.parsed(Window.parse, 'a window such as "30m", "1h" or "7d"')


def count_of_calls(item: ItemReader) -> int:
    """Reads a number of calls, from 1 to the most uses of a rule."""
    count = item.count()
    if not 1 <= count <= USES_MAX:
        raise item.error(f"{count} is out of bounds", f"write 1 to {USES_MAX}")
    return count
