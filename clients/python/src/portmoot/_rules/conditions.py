"""Conditions as rules write them: ``"/repo" = { one_of = [...] }``."""

from __future__ import annotations

from . import constant
from .arguments import LEAVES_MAX
from .characters import CHARS_MAX, CharSet, parse_shape
from .constant import type_of
from .decimals import Decimal
from .places import PathRoot, PlaceError, UrlRoot
from .pointer import Pointer
from .reader import ItemReader, TableReader
from .values import (
    CONSTANTS_MAX,
    SHAPES_MAX,
    Absent,
    Chars,
    CountRange,
    Each,
    Length,
    Numbers,
    OfType,
    OneOf,
    Shapes,
    Some,
    Under,
    Url,
    ValueTest,
)

CONDITIONS_MAX = LEAVES_MAX
"""The most members that a rule names."""
_SORTS = ("equals", "one_of", "integer", "decimal", "under", "url", "chars", "shape", "count", "absent", "type", "some")
_WITH_LENGTH: tuple[list[str], ...] = ([], ["chars"], ["shape"])


def conditions(when: ItemReader | None, approves: bool) -> tuple[tuple[Pointer, ValueTest], ...]:
    """Reads ``[rule.when]``: members with their tests, in the order of their pointers."""
    if when is None:
        return ()
    tests: list[tuple[Pointer, ValueTest]] = []
    for member in when.table().items():
        pointer = member.key_pointer('name the member by a JSON Pointer, as in "/repo"')
        tests.append((pointer, _test(member, approves)))
    # Pairs are compared only of as many as there may be.
    if len(tests) > CONDITIONS_MAX or _is_nested([pointer for pointer, _ in tests]):
        message = f"more than {CONDITIONS_MAX} members are named, or one inside of another"
        raise when.key_error(message, "name the innermost members alone")
    return tuple(sorted(tests, key=lambda member: member[0].text))


def _is_nested(pointers: list[Pointer]) -> bool:
    """Whether one member lies inside of another."""
    return any(outer != inner and outer.holds(inner) for outer in pointers for inner in pointers)


def _test(item: ItemReader, approves: bool) -> ValueTest:
    """Reads one test."""
    table = item.table()
    table.known([*_SORTS, "length", "each"])
    sorts = [sort for sort in _SORTS if table.has(sort)]
    is_misplaced = (table.has("length") and sorts not in _WITH_LENGTH) or (table.has("each") and sorts != ["count"])
    if max(len(sorts), int(table.has("length"))) != 1 or is_misplaced:
        remedy = f"write one of {', '.join(_SORTS)}; `length` goes with `chars` and `shape`, `each` with `count`"
        raise item.error("the condition has not exactly one sort", remedy)
    read = _of_sort(table, sorts[0] if sorts else None, approves)
    if approves and not read.is_for_approval:
        raise item.error(
            "the condition would admit values that it does not describe",
            "in an approving rule write what the value is: `equals`, `one_of`, a range, `under`, `url`, `chars` or `shape`",
        )
    return read


def _of_sort(table: TableReader, sort: str | None, approves: bool) -> ValueTest:
    if sort is None:
        return Length(table.required("length", "write `length = [lowest, highest]`").range())
    item = table.required(sort, "write it")
    match sort:
        case "equals":
            return OneOf((item.constant(),))
        case "one_of":
            return _one_of(item)
        case "integer" | "decimal":
            return _numbers(item, sort == "integer")
        case "under":
            return Under(item.parsed(PathRoot.parse, 'a directory such as "/srv/docs"'))
        case "url":
            return Url(_url(item.table()))
        case "chars":
            symbols = item.parsed(CharSet.parse, 'a set such as "A-Z0-9"')
            return Chars(symbols, _text_length(table))
        case "shape":
            shapes = _shapes(item)
            return Shapes(shapes, _text_length(table))
        case "count":
            return _elements(table, item, approves)
        case "absent":
            if not item.flag():
                raise item.error("`absent` is only ever true", "leave the condition out")
            return Absent()
        case "type":
            return OfType(item.parsed(_type, ", ".join(constant.TYPES)))
    inner = _test(item, approves)
    _no_elements(item, inner)
    return Some(inner)


def _type(name: str) -> str:
    if name not in constant.TYPES:
        raise ValueError("this is no type of JSON")
    return name


def _one_of(item: ItemReader) -> ValueTest:
    constants = [one.constant() for one in item.some(CONSTANTS_MAX, "`one_of` has {} constants")]
    if len({one.raw for one in constants}) < len(constants):
        raise item.error("a constant stands there twice", "write it once")
    if len({type_of(one.raw) for one in constants} - {"null"}) > 1:
        raise item.error("the constants have several types", "write constants of one type, or null")
    return OneOf(tuple(sorted(constants, key=lambda one: one.raw)))


def _numbers(item: ItemReader, is_whole: bool) -> ValueTest:
    low, high = (_end(end, is_whole) for end in item.pair())
    if low.scaled > high.scaled:
        raise item.not_ascending()
    return Numbers(low, high, is_whole)


def _end(end: ItemReader, is_whole: bool) -> Decimal:
    if end.number().is_fraction and is_whole:
        raise end.error("an integer has no fraction", "write it without, or use `decimal`")
    return end.decimal()


def _url(table: TableReader) -> UrlRoot:
    table.known(["origin", "under", "query"])
    origin = table.required("origin", 'write `origin = "https://api.example.com"`')
    under, query = table.get("under"), table.get("query")
    path = "/" if under is None else under.text()
    names = [] if query is None else [name.text() for name in query.list()]
    try:
        return UrlRoot.make(origin.text(), path, names)
    except PlaceError as error:
        raise table.error(str(error), "write origin, path and query as the server's URLs have them") from None


def _shapes(item: ItemReader) -> tuple[str, ...]:
    items = item.some(SHAPES_MAX, "`shape` has {} shapes")
    return tuple(sorted({one.parsed(parse_shape, 'a shape such as "A-9"') for one in items}))


def _text_length(table: TableReader) -> CountRange:
    item = table.required("length", "write `length = [lowest, highest]`, in characters")
    length = item.range()
    if length.low == 0 or length.high > CHARS_MAX:
        raise item.error("the length is out of bounds", f"write 1 to {CHARS_MAX} characters")
    return length


def _elements(table: TableReader, count: ItemReader, approves: bool) -> ValueTest:
    counted = count.range()
    each = table.get("each")
    if each is None:
        return Each(counted, None)
    if not approves:
        raise each.key_error("one more element would evade the rule", "in a rule that rejects or asks write `some`")
    inner = _test(each, approves)
    _no_elements(each, inner)
    return Each(counted, inner)


def _no_elements(item: ItemReader, inner: ValueTest) -> None:
    """Refuses tests of elements of elements, and of elements that are not there."""
    if isinstance(inner, (Each, Some, Absent)):
        raise item.error("elements are tested one level deep", "test their values, or leave them to a person")
