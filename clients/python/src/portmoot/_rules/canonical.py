"""Canonical text of JSON: one spelling for all texts of the same value, read without recursion."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from .._json import DEPTH_MAX, is_text
from .spelling import is_hidden, quote

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:"
    r'(?P<mark>[{}\[\]:,])|(?P<text>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")'
    r"|(?P<plain>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null))"
)
_END = re.compile(r"[ \t\n\r]*\Z")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_PIECE = re.compile(r"\\u([0-9a-f]{4})|\\(.)|([^\\])", re.DOTALL)
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class BadJson(ValueError):
    """No JSON, half a surrogate pair, or nested deeper than :data:`DEPTH_MAX`."""


class TwiceInJson(ValueError):
    """A member that occurs twice in an object."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True)
class Node:
    """A value in canonical form."""

    raw: str
    nesting: int = 0
    """How many objects and arrays lie inside each other."""
    members: tuple[tuple[str, Node], ...] | None = None
    """Of an object, by name."""
    elements: tuple[Node, ...] | None = None
    """Of an array."""


@dataclass
class _Open:
    """An object or array that is not closed yet."""

    is_object: bool
    names: list[str]
    nodes: list[Node]

    def closed(self) -> tuple[Node, str | None]:
        """The value, and the first member that occurs twice."""
        nesting = 1 + max((node.nesting for node in self.nodes), default=0)
        if not self.is_object:
            return Node(f"[{','.join(node.raw for node in self.nodes)}]", nesting, elements=tuple(self.nodes)), None
        members = sorted(zip(self.names, self.nodes), key=lambda member: member[0])
        twice = next((one for (one, _), (other, _) in zip(members, members[1:]) if one == other), None)
        raw = ",".join(f"{quote(name)}:{node.raw}" for name, node in members)
        return Node(f"{{{raw}}}", nesting, members=tuple(members)), twice


def _unescaped(token: str) -> str:
    text = json.loads(token) if "\\" in token else token[1:-1]
    if not is_text(text):
        raise BadJson("half a surrogate pair")
    return str(text)


def read(text: str) -> Node:
    """Reads a value.

    Raises:
        BadJson: it is none.
        TwiceInJson: a member occurs twice in one of its objects.
    """
    return _Reader(text).whole()


class _Reader:
    """Reads one value, with what is open on a list of its own."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: list[_Open] = []
        self._twice: str | None = None
        self._root: Node | None = None
        self._expected = "value"
        """One of: value, first (a value or the end of an array), name, first name (or the end of an object), colon, next."""

    def whole(self) -> Node:
        at = 0
        while self._root is None:
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise BadJson("expected another token")
            at = found.end()
            self._take(found)
        if not _END.match(self._text, at):
            raise BadJson("characters behind the value")
        if self._twice is not None:
            raise TwiceInJson(self._twice)
        return self._root

    def _take(self, found: re.Match[str]) -> None:
        mark, expected = found["mark"], self._expected
        if expected in ("value", "first") and (mark is None or mark in "{["):
            self._value(found)
        elif expected in ("name", "first name") and found["text"] is not None:
            self._open[-1].names.append(_unescaped(found["text"]))
            self._expected = "colon"
        elif expected == "colon" and mark == ":":
            self._expected = "value"
        elif expected == "next" and mark == ",":
            self._expected = "name" if self._open[-1].is_object else "value"
        elif expected in ("next", "first", "first name") and mark == ("}" if self._open[-1].is_object else "]"):
            self._close()
        else:
            raise BadJson("another token was expected")

    def _value(self, found: re.Match[str]) -> None:
        if found["mark"] is None:
            text = found["text"]
            self._done(Node(found["plain"] if text is None else quote(_unescaped(text))))
            return
        if len(self._open) == DEPTH_MAX:
            raise BadJson(f"nested deeper than {DEPTH_MAX}")
        is_object = found["mark"] == "{"
        self._open.append(_Open(is_object, [], []))
        self._expected = "first name" if is_object else "first"

    def _close(self) -> None:
        node, twice = self._open.pop().closed()
        if self._twice is None:
            self._twice = twice
        self._done(node)

    def _done(self, node: Node) -> None:
        if self._open:
            self._open[-1].nodes.append(node)
            self._expected = "next"
        else:
            self._root = node


def text_of(raw: str) -> str | None:
    """The string that canonical text spells, if it is one."""
    return _unescaped(raw) if raw.startswith('"') else None


def texts_in(raw: str) -> list[str]:
    """All strings in canonical text, names of members too."""
    return [_unescaped(found[0]) for found in _STRING.finditer(raw)]


def shown(raw: str) -> str:
    """Canonical text in which every hidden character of a string is visible."""
    return _STRING.sub(lambda found: '"' + _PIECE.sub(_visible, found[0][1:-1]) + '"', raw)


def _visible(piece: re.Match[str]) -> str:
    unit, escaped, plain = piece.groups()
    symbol = chr(int(unit, 16)) if unit else plain or _SHORT.get(escaped, escaped)
    if symbol in "\n\t" or not is_hidden(symbol):
        return piece[0]
    return f"\\\\u{{{ord(symbol):x}}}"
