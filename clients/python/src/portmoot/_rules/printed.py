"""Canonical text of rules: TOML with one spelling for each rule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .._kind import REQUEST
from . import spelling
from .constant import Constant, type_of
from .decimals import spelled
from .guards import Guards
from .values import Absent, Chars, CountRange, Each, Length, Numbers, OfType, OneOf, Shapes, Some, Under, Url, ValueTest
from .window import time

if TYPE_CHECKING:
    from .rule import Rule


def rule_text(rule: Rule) -> str:
    """A rule as a ``[[rule]]`` of TOML."""
    expires = None if rule.expires_ms is None else _text(time(rule.expires_ms))
    lines = {
        "id": _text(rule.id),
        "version": str(rule.version),
        "author": _text(rule.author),
        "decision": _text(rule.decision),
        "kind": _text(rule.kind),
        "to": None if rule.to is None else _text(rule.to),
        "proposers": _list(map(_text, rule.proposers)),
        "definition": None if rule.definition is None else _text(rule.definition),
        "server": None if rule.server is None else _text(rule.server),
        "expires": expires,
        "uses": None if rule.uses is None else str(rule.uses),
        "rate": None if rule.guards.rate is None else _text(str(rule.guards.rate)),
        "during": None if rule.during is None else _text(str(rule.during)),
        "destructive": "true" if rule.destructive else None,
        "shadow": "true" if rule.shadow else None,
    }
    text = "[[rule]]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items() if value is not None) + _guards(rule.guards)
    if rule.when:
        text += "\n[rule.when]\n"
    return text + "".join(f"{_text(pointer.text)} = {_table(_test(test))}\n" for pointer, test in rule.when)


def _guards(guards: Guards) -> str:
    text = ""
    for total in guards.sums:
        text += f"\n[[rule.sum]]\nof = {_text(total.of.text)}\nmax = {total.max}\nwithin = {_text(str(total.within))}\n"
    for count in guards.counts:
        text += f"\n[[rule.count]]\nsame = {_text(count.same.text)}\nmax = {count.max}\nwithin = {_text(str(count.within))}\n"
    for after in guards.after:
        kind = _text(f"{REQUEST}:{after.method}:{after.target}")
        same = _table(f"{_text(here.text)} = {_text(there.text)}" for here, there in after.same)
        text += f"\n[[rule.after]]\nkind = {kind}\nto = {_text(after.to)}\nsame = {same}\nwithin = {_text(str(after.within))}\n"
    return text


def _test(test: ValueTest) -> list[str]:
    match test:
        case OneOf((one,)):
            return [f"equals = {_constant(one)}"]
        case OneOf(constants):
            return [f"one_of = {_list(map(_constant, constants))}"]
        case Numbers(low, high, True):
            return [f"integer = [{low}, {high}]"]
        case Numbers(low, high):
            return [f"decimal = [{low.with_fraction()}, {high.with_fraction()}]"]
        case Under(root):
            return [f"under = {_text(str(root))}"]
        case Url(root):
            query = _list(map(_text, root.query))
            return [f"url = {_table([f'origin = {_text(root.origin)}', f'under = {_text(root.path)}', f'query = {query}'])}"]
        case Chars(symbols, length):
            return [f"chars = {_text(str(symbols))}", f"length = {_range(length)}"]
        case Shapes(shapes, length):
            return [f"shape = {_list(map(_text, shapes))}", f"length = {_range(length)}"]
        case Each(count, each):
            return [f"count = {_range(count)}"] + ([] if each is None else [f"each = {_table(_test(each))}"])
        case Absent():
            return ["absent = true"]
        case OfType(type):
            return [f"type = {_text(type)}"]
        case Length(length):
            return [f"length = {_range(length)}"]
        case Some(some):
            return [f"some = {_table(_test(some))}"]
    raise TypeError(f"{test!r} is no test")


def _range(count: CountRange) -> str:
    return f"[{count.low}, {count.high}]"


def _constant(constant: Constant) -> str:
    raw = constant.raw
    kind = type_of(raw)
    if kind == "string":
        return _raw_text(raw)
    if kind == "boolean" or (kind == "number" and spelled(raw).exact is not None):
        return raw
    return f"{{ json = {_text(raw)} }}"


def _text(text: str) -> str:
    return _raw_text(spelling.quote(text))


def _raw_text(raw: str) -> str:
    """A canonical string of JSON as a string of TOML: the escapes of the one are escapes of the other."""
    return raw.replace("\x7f", "\\u007f")


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(items)}]"


def _table(members: Iterable[str]) -> str:
    inner = ", ".join(members)
    return f"{{ {inner} }}" if inner else "{}"
