"""TOML with the place of every key and value, which the reader of the standard library does not keep.

It reads what :mod:`tomllib` reads, and what TOML 1.1 adds that rules may be written with. Where it is not sure, it refuses a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn

DEPTH_MAX = 80
"""How deep lists and tables in braces may be nested, and how many names a key may have."""
_BARE = re.compile("[A-Za-z0-9_-]+")
_SPACE = re.compile("[ \t]*")
_COMMENT = re.compile("#[^\x00-\x08\x0a-\x1f\x7f]*")
_NEWLINE = re.compile("\r?\n")
_NUMBER = re.compile(
    r"(?P<float>[+-]?(?:(?:0|[1-9](?:_?[0-9])*)(?:\.[0-9](?:_?[0-9])*(?:[eE][+-]?[0-9](?:_?[0-9])*)?|[eE][+-]?[0-9](?:_?[0-9])*)|inf|nan))"
    r"|(?P<other>0x[0-9A-Fa-f](?:_?[0-9A-Fa-f])*|0o[0-7](?:_?[0-7])*|0b[01](?:_?[01])*)"
    r"|(?P<integer>[+-]?(?:0|[1-9](?:_?[0-9])*))"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
    r"|[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
)
_WORD_END = re.compile(r"(?=[ \t\r\n,\]}#]|\Z)")
_LITERAL = re.compile("'([^'\x00-\x08\x0a-\x1f\x7f]*)'")
_BASIC = re.compile('"((?:[^"\\\\\x00-\x08\x0a-\x1f\x7f]|\\\\.)*)"')
_LONG_PIECE = re.compile(r'(?:[^"\\]|\\.)+|"', re.DOTALL)
_NOT_IN_LONG = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPE = re.compile(r"\\(?:([btnfre\"\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|([ \t]*\n[ \t\n]*)|)")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b", '"': '"', "\\": "\\"}


class TomlError(ValueError):
    """A text that is no TOML, with the place at which that shows."""

    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


@dataclass
class Table:
    """A table, with its keys in the order of their names."""

    items: dict[str, Item] = field(default_factory=dict)
    is_implicit: bool = False
    """Made on the way to another one."""
    is_dotted: bool = False
    """Made by a key with dots."""
    is_closed: bool = False
    """In braces: it cannot be extended."""

    def sorted(self) -> list[tuple[str, Item]]:
        """All keys with their values, in the order of their names."""
        return sorted(self.items.items())


@dataclass
class Value:
    """A value with the place at which it begins."""

    at: int
    kind: str
    """``text``, ``flag``, ``integer``, ``other integer`` (of another base), ``float``, ``date``, ``list`` or ``table``."""
    text: str = ""
    """Of a text, a date, a flag, or a number as it is spelled, without ``_``."""
    elements: list[Value] = field(default_factory=list)
    table: Table = field(default_factory=Table)
    is_of_tables: bool = False
    """Of a list: made of ``[[headers]]``."""


@dataclass
class Item:
    """The value of a key, and the place of the key."""

    key_at: int
    value: Value


_Path = list[tuple[str, int]]


def parse(text: str) -> Table:
    """Reads a file.

    Raises:
        TomlError: the first fault.
    """
    return _Parser(text).document()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 1 if text.startswith("\ufeff") else 0
        self._root = Table()

    def document(self) -> Table:
        table = self._root
        while True:
            self._blank()
            if self._at == len(self._text):
                return self._root
            if self._peek("[["):
                table = self._header("]]", "array table")
            elif self._peek("["):
                table = self._header("]", "table")
            else:
                self._pair(table)
            self._line_end()

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        raise TomlError(self._at if at is None else at, message)

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self._text, self._at)
        if found is None:
            return False
        self._at = found.end()
        return True

    def _blank(self) -> None:
        """White space, comments and line ends."""
        while True:
            self._skip(_SPACE)
            self._skip(_COMMENT)
            if not self._skip(_NEWLINE):
                return

    def _line_end(self) -> None:
        self._skip(_SPACE)
        self._skip(_COMMENT)
        if self._at < len(self._text) and not self._skip(_NEWLINE):
            self._fail("unexpected characters, expected the end of the line")

    def _header(self, end: str, what: str) -> Table:
        begin = self._at
        self._at += len(end)
        path = self._key()
        if not self._peek(end):
            self._at += self._peek("]")
            self._fail(f"unclosed {what}, expected `{end[0]}`")
        self._at += len(end)
        table = self._walk(self._root, path[:-1], is_dotted=False)
        name, key_at = path[-1]
        known = table.items.get(name)
        if end == "]":
            return self._std_table(table, known, path[-1], begin)
        if known is None:
            known = table.items[name] = Item(key_at, Value(begin, "list", is_of_tables=True))
        if not known.value.is_of_tables:
            self._fail("duplicate key", key_at)
        element = Value(begin, "table")
        known.value.elements.append(element)
        return element.table

    def _std_table(self, parent: Table, known: Item | None, key: tuple[str, int], begin: int) -> Table:
        name, key_at = key
        table = Table()
        if known is not None:
            table = known.value.table
            if known.value.kind != "table" or not table.is_implicit or table.is_dotted:
                self._fail("duplicate key", key_at)
        table.is_implicit = False
        parent.items[name] = Item(key_at, Value(begin, "table", table=table))
        return table

    def _walk(self, table: Table, path: _Path, *, is_dotted: bool) -> Table:
        """The table at the end of a path; tables on the way are made."""
        for name, key_at in path:
            item = table.items.get(name)
            if item is None:
                made = Table(is_implicit=True, is_dotted=is_dotted)
                table.items[name] = Item(key_at, Value(key_at, "table", table=made))
                table = made
                continue
            value = item.value.elements[-1] if item.value.is_of_tables and not is_dotted else item.value
            if value.kind != "table" or value.table.is_closed or (is_dotted and not value.table.is_dotted):
                self._fail("duplicate key", key_at)
            table = value.table
        return table

    def _key(self) -> _Path:
        path: _Path = []
        while True:
            self._skip(_SPACE)
            at = self._at
            if self._skip(_BARE):
                path.append((self._text[at : self._at], at))
            elif self._peek('"""') or self._peek("'''"):
                self._fail("a key is no text of several lines")
            elif self._peek('"') or self._peek("'"):
                path.append((self._string(), at))
            else:
                self._fail("invalid key, expected a name")
            self._skip(_SPACE)
            if not self._peek("."):
                return path
            if len(path) == DEPTH_MAX:
                self._fail("nested too deeply")
            self._at += 1

    def _pair(self, table: Table, depth: int = 0) -> None:
        path = self._key()
        if not self._peek("="):
            self._fail("key with no value, expected `=`")
        self._at += 1
        self._skip(_SPACE)
        value = self._value(depth)
        name, key_at = path[-1]
        table = self._walk(table, path[:-1], is_dotted=True)
        if name in table.items:
            self._fail("duplicate key", key_at)
        table.items[name] = Item(key_at, value)

    def _value(self, depth: int) -> Value:
        at = self._at
        if depth > DEPTH_MAX:
            self._fail("nested too deeply")
        if self._peek('"') or self._peek("'"):
            return Value(at, "text", self._string())
        if self._peek("["):
            return self._list(depth)
        if self._peek("{"):
            return self._braces(depth)
        for word in ("true", "false"):
            if self._peek(word):
                self._at += len(word)
                return self._word(Value(at, "flag", word))
        if self._skip(_DATE):
            return self._word(Value(at, "date", self._text[at : self._at]))
        found = _NUMBER.match(self._text, at)
        if found is None or found.lastgroup is None:
            self._fail("missing value, or one that is none of TOML")
        self._at = found.end()
        kind = "other integer" if found.lastgroup == "other" else found.lastgroup
        return self._word(Value(at, kind, found[0].replace("_", "")))

    def _word(self, value: Value) -> Value:
        if not _WORD_END.match(self._text, self._at):
            self._fail("a value that is none of TOML", value.at)
        return value

    def _list(self, depth: int) -> Value:
        value = Value(self._at, "list")
        self._at += 1
        while True:
            self._blank()
            if not self._peek("]"):
                value.elements.append(self._value(depth + 1))
                self._blank()
            if self._peek("]"):
                self._at += 1
                return value
            if not self._peek(","):
                self._fail("unclosed array, expected `]`")
            self._at += 1

    def _braces(self, depth: int) -> Value:
        value = Value(self._at, "table")
        self._at += 1
        while True:
            self._blank()
            if not self._peek("}"):
                self._pair(value.table, depth + 1)
                self._blank()
            if self._peek("}"):
                self._at += 1
                value.table.is_closed = True
                return value
            if not self._peek(","):
                self._fail("unclosed inline table, expected `}`")
            self._at += 1
            self._blank()
            if not value.table.items:
                self._fail("extra comma in an inline table")

    def _string(self) -> str:
        begin, quote = self._at, self._text[self._at]
        if self._peek(quote * 3):
            raw = self._long_string(quote)
            is_long = True
        else:
            found = (_LITERAL if quote == "'" else _BASIC).match(self._text, begin)
            if found is None:
                self._fail(f"a text that does not end, or a character that must be escaped, expected `{quote}`")
            self._at, raw, is_long = found.end(), found[1], False
        return raw if quote == "'" else _ESCAPE.sub(lambda escape: self._escaped(escape, begin, is_long), raw)

    def _long_string(self, quote: str) -> str:
        """What lies between quotes of three; one or two quotes may stand before the last ones."""
        text, begin = self._text, self._at + 3
        at = begin
        while not text.startswith(quote * 3, at):
            piece = _LONG_PIECE.match(text, at) if quote == '"' else None
            at = piece.end() if piece else at + 1
            if at >= len(text):
                self._fail("a text of several lines that does not end")
        end = at
        while end - at < 2 and text.startswith(quote, end + 3):
            end += 1
        self._at = end + 3
        raw = text[begin:end].removeprefix("\n")
        if _NOT_IN_LONG.search(raw):
            self._fail("a character that must be escaped", begin)
        return raw

    def _escaped(self, escape: re.Match[str], begin: int, is_long: bool) -> str:
        short, *codes, line_end = escape.groups()
        if short:
            return _ESCAPES[short]
        if line_end is not None and is_long:
            return ""
        code = next((int(code, 16) for code in codes if code), None)
        if code is None or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            self._fail("an escape that TOML does not have", begin)
        return chr(code)
