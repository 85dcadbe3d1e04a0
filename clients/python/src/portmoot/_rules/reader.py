"""Tables of a file with their places: values of the expected type, or an error that says what to write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from . import spelling
from .constant import Constant, ConstantError
from .decimals import Decimal, Spelled, spelled
from .pointer import Pointer, PointerError
from .toml import Item, Table, Value
from .values import CountRange

_T = TypeVar("_T")
_COUNT_MAX = 2**32 - 1


class RuleFileError(ValueError):
    """Why a file of rules is not accepted: the place, what is wrong there, and what to write instead."""

    def __init__(self, text: str, at: int, message: str, remedy: str) -> None:
        before = text[:at]
        self.line: int = before.count("\n") + 1
        """The line, from 1 on."""
        self.column: int = at - (before.rfind("\n") + 1) + 1
        """The column in characters, from 1 on."""
        self.rule: str | None = None
        """The id of the rule, if it is known."""
        self.message: str = spelling.line(message)
        """The fault."""
        self.remedy: str = spelling.line(remedy)
        """What to write instead."""
        super().__init__(self.message)

    def __str__(self) -> str:
        rule = f"rule {self.rule}: " if self.rule is not None else ""
        return f"line {self.line}, column {self.column}: {rule}{self.message}; {self.remedy}"


@dataclass(frozen=True)
class TableReader:
    """A table, with its place."""

    source: str
    table: Table
    at: int

    def known(self, keys: Sequence[str]) -> None:
        """Refuses keys that are not among these."""
        for key, item in self.table.sorted():
            if key not in keys:
                message = f"`{key}` is not known here"
                raise RuleFileError(self.source, item.key_at, message, f"the keys are {', '.join(keys)}")

    def has(self, key: str) -> bool:
        return key in self.table.items

    def get(self, key: str) -> ItemReader | None:
        item = self.table.items.get(key)
        return None if item is None else ItemReader(self.source, key, item)

    def required(self, key: str, remedy: str) -> ItemReader:
        item = self.get(key)
        if item is None:
            raise self.error(f"`{key}` is missing", remedy)
        return item

    def items(self) -> list[ItemReader]:
        """All keys with their values."""
        return [ItemReader(self.source, key, item) for key, item in self.table.sorted()]

    def error(self, message: str, remedy: str) -> RuleFileError:
        """An error about the whole table."""
        return RuleFileError(self.source, self.at, message, remedy)


@dataclass(frozen=True)
class ItemReader:
    """A value, with its key and its place."""

    source: str
    key: str
    item: Item

    @property
    def _value(self) -> Value:
        return self.item.value

    def error(self, message: str, remedy: str) -> RuleFileError:
        """An error about the value."""
        return RuleFileError(self.source, self._value.at, message, remedy)

    def key_error(self, message: str, remedy: str) -> RuleFileError:
        """An error about the key."""
        return RuleFileError(self.source, self.item.key_at, message, remedy)

    def key_pointer(self, remedy: str) -> Pointer:
        """The key as the name of a member."""
        try:
            return Pointer.parse(self.key)
        except PointerError as error:
            raise self.key_error(str(error), remedy) from None

    def _wrong_type(self, expected: str) -> RuleFileError:
        return self.error(f"`{self.key}` is no {expected}", f"write a {expected}")

    def text(self) -> str:
        if self._value.kind != "text":
            raise self._wrong_type("text in quotes")
        return self._value.text

    def text_or_date(self) -> str:
        return self._value.text if self._value.kind == "date" else self.text()

    def flag(self) -> bool:
        if self._value.kind != "flag":
            raise self._wrong_type("`true` or `false`")
        return self._value.text == "true"

    def count(self) -> int:
        digits = self._spelled().removeprefix("+")
        if not digits.isascii() or not digits.isdigit() or len(digits) > 10 or int(digits) > _COUNT_MAX:
            raise self._wrong_type("whole number")
        return int(digits)

    def _spelled(self) -> str:
        if self._value.kind not in ("integer", "float"):
            raise self._wrong_type("number")
        return self._value.text

    def number(self) -> Spelled:
        number = spelled(self._spelled())
        if number.exact is None:
            raise self.error(
                "not every reader of JSON reads this number alike",
                "write it with at most 15 digits, without exponent, and not as -0",
            )
        return number

    def decimal(self) -> Decimal:
        exact = self.number().exact
        if exact is None:
            raise self._wrong_type("number")
        return exact

    def list(self) -> list[ItemReader]:
        if self._value.kind != "list":
            raise self._wrong_type("list in brackets")
        return [ItemReader(self.source, self.key, Item(self.item.key_at, value)) for value in self._value.elements]

    def some(self, most: int, fault: str) -> Sequence[ItemReader]:
        """The items of a list that has at least one, and no more than so many; in the fault, ``{}`` is their number."""
        items = self.list()
        if not 1 <= len(items) <= most:
            raise self.error(fault.format(len(items)), f"write 1 to {most}")
        return items

    def table(self) -> TableReader:
        if self._value.kind != "table":
            raise self._wrong_type("table in braces")
        return TableReader(self.source, self._value.table, self._value.at)

    def pair(self) -> tuple[ItemReader, ItemReader]:
        """Two items, the lower and the upper end."""
        items = self.list()
        if len(items) != 2:
            raise self._wrong_type("pair `[lowest, highest]`")
        return items[0], items[1]

    def range(self) -> CountRange:
        low, high = (end.count() for end in self.pair())
        if low > high:
            raise self.not_ascending()
        return CountRange(low, high)

    def not_ascending(self) -> RuleFileError:
        return self.error("the lowest is above the highest", "write the lower one first")

    def constant(self) -> Constant:
        kind, text = self._value.kind, self._value.text
        if kind in ("list", "date"):
            raise self.error("a list or a date is no constant", "write it as JSON in a text: `{ json = '[1, 2]' }`")
        if kind == "table":
            table = self.table()
            table.known(["json"])
            text = table.required("json", "write `{ json = 'null' }`").text()
        elif kind == "text":
            text = spelling.quote(text)
        elif kind != "flag":
            self.number()
        try:
            return Constant.parse(text)
        except ConstantError as error:
            raise self.error(str(error), "leave the member to a person, or write another constant") from None

    def parsed(self, parse: Callable[[str], _T], example: str) -> _T:
        """A value of a type that knows its own syntax."""
        text = self.text()
        try:
            return parse(text)
        except ValueError as error:
            raise self.error(str(error), f"write {example}") from None
