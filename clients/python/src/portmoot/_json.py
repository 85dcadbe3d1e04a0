"""JSON as it was written: members with the text of their values, and duplicates that are refused.

The standard reader keeps the last of two equal members, and reads ``1e400`` as infinity. What others review and what runs must be
the same bytes, so params are passed on as text, and an object that two readers could read differently is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"
"""A JSON value to send."""

_SPACE = re.compile(r"[ \t\n\r]*")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_DIGITS_MAX = 4000
"""Integers with more digits are read as floats: the interpreter bounds the work of reading long ones."""


DEPTH_MAX = 128
"""How deep objects and arrays of a message may be nested: reading takes stack for each."""
_NESTING = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])', re.DOTALL)


class JsonError(ValueError):
    """A text that is not JSON, or an object that has a member twice."""


class _Duplicate(Exception):
    pass


def _no_constant(name: str) -> NoReturn:
    raise JsonError(f"not valid JSON: {name} is no value")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS_MAX else float(digits)


def refuse_depth(text: str) -> None:
    """Refuses a message that is nested deeper than ``DEPTH_MAX``."""
    if text.count("[") + text.count("{") <= DEPTH_MAX:
        return
    depth = 0
    for token in _NESTING.finditer(text):
        if token[1]:
            depth += 1
            if depth > DEPTH_MAX:
                raise JsonError(f"not valid JSON: nested deeper than {DEPTH_MAX}")
        elif token[2]:
            depth -= 1


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Duplicate(key)
            seen.add(key)
    for key in members:
        if not is_text(key):
            raise JsonError("not valid JSON: half a surrogate pair in a key")
    return members


_ANY = json.JSONDecoder(parse_constant=_no_constant, parse_int=_integer)
_UNIQUE = json.JSONDecoder(parse_constant=_no_constant, parse_int=_integer, object_pairs_hook=_unique)


def is_text(value: object) -> bool:
    """Whether this is a string without half a surrogate pair."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class Member:
    """The value of a member, and how it was written."""

    value: Any
    raw: str

    @property
    def text(self) -> str | None:
        """The value if it is a string without half a surrogate pair."""
        return self.value if is_text(self.value) else None

    @property
    def id(self) -> str | None:
        """A JSON-RPC id, comparable: a number as it was spelled, a string in its shortest form."""
        if is_text(self.value):
            return json.dumps(self.value, ensure_ascii=False)
        return self.raw if _INTEGER.match(self.raw) else None


class Members(dict[str, Member]):
    """The members of one object. Of a member that occurs twice, the first counts."""

    duplicate: str | None = None
    """The first member that occurs twice."""


def double_of(keys: Iterable[str], exact: Iterable[str]) -> str | None:
    """The fault of a member that differs from one of these only in letter case: some JSON readers take it for the same."""

    def folded(text: str) -> str:
        return text.upper().lower()

    meant = {folded(one): one for one in exact}
    for key in keys:
        one = meant.get(folded(key))
        if one is not None and one != key:
            return f"the member {write(key)} could be taken for `{one}`"
    return None


def members(text: str, *, unique: bool = False) -> Members:
    """The members of an object, with the text of each value.

    With ``unique``, no object at any depth may have a member twice; else ``duplicate`` tells it of the outermost one.
    """
    decoder = _UNIQUE if unique else _ANY
    found = Members()
    try:
        at = _skip(text, 0)
        if text[at : at + 1] != "{":
            _decode(decoder, text, at)
            raise JsonError("expected a JSON object")
        at = _skip(text, at + 1)
        if text[at : at + 1] == "}":
            return _ended(text, at + 1, found)
        while True:
            if text[at : at + 1] != '"':
                raise JsonError("not valid JSON: expected the name of a member")
            key, at = _decode(decoder, text, at)
            if not is_text(key):
                raise JsonError("not valid JSON: half a surrogate pair in a key")
            at = _skip(text, at)
            if text[at : at + 1] != ":":
                raise JsonError("not valid JSON: expected `:`")
            begin = _skip(text, at + 1)
            value, at = _decode(decoder, text, begin)
            if key in found:
                found.duplicate = found.duplicate or key
                if unique:
                    raise _Duplicate(key)
            else:
                found[key] = Member(value, text[begin:at])
            at = _skip(text, at)
            if text[at : at + 1] == "}":
                return _ended(text, at + 1, found)
            if text[at : at + 1] != ",":
                raise JsonError("not valid JSON: expected `,` or `}`")
            at = _skip(text, at + 1)
    except _Duplicate as duplicate:
        raise JsonError(twice(str(duplicate))) from None
    except json.JSONDecodeError as error:
        raise JsonError(f"not valid JSON: {error.msg}") from None
    except RecursionError:
        raise JsonError("not valid JSON: nested too deeply") from None


def members_once(text: str) -> Members:
    """The members of an object that has none of them twice."""
    found = members(text)
    if found.duplicate is not None:
        raise JsonError(twice(found.duplicate))
    return found


def elements(text: str) -> list[str]:
    """The elements of an array that was read before, each as it was written."""
    found: list[str] = []
    at = _skip(text, 0)
    if text[at : at + 1] != "[":
        raise JsonError("expected a JSON array")
    at = _skip(text, at + 1)
    while text[at : at + 1] not in ("]", ""):
        begin = at
        _, at = _decode(_ANY, text, begin)
        found.append(text[begin:at])
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
    return found


def twice(key: str) -> str:
    """The fault of a member that occurs twice."""
    return f"the member {json.dumps(key, ensure_ascii=False)} occurs twice"


def value(text: str) -> Any:
    """The value of a text that was read before."""
    return _decode(_ANY, text, 0)[0]


def write(value: object) -> str:
    """A value as JSON, compact. Fails for what JSON cannot spell: NaN, half a surrogate pair."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise JsonError(f"it cannot be written as JSON: {error}") from None
    if not is_text(text):
        raise JsonError("it cannot be written as JSON: half a surrogate pair")
    return text


def write_object(raw: Mapping[str, str | None]) -> str:
    """An object of values that are JSON already, without those that are ``None``."""
    return "{" + ",".join(f"{json.dumps(key)}:{text}" for key, text in raw.items() if text is not None) + "}"


def _decode(decoder: json.JSONDecoder, text: str, at: int) -> tuple[Any, int]:
    return decoder.raw_decode(text, at)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _ended(text: str, at: int, found: Members) -> Members:
    if _skip(text, at) != len(text):
        raise JsonError("not valid JSON: characters behind the object")
    return found
