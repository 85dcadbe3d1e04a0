"""Sets of ASCII characters and shapes of short texts, such as ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase, digits

from .fit import Fit
from .spelling import likeness

CHARS_MAX = 64
"""The longest text that a set of characters or a shape admits, in characters."""
_PUNCTUATION = "+,-:@_"
_CLASSES = {"A": ascii_uppercase, "a": ascii_lowercase, "9": digits}
_ALNUM = frozenset(ascii_uppercase + ascii_lowercase + digits)
_ALLOWED = _ALNUM | frozenset(_PUNCTUATION)
_RANGE = re.compile("([\x00-\x7f])-(.)", re.DOTALL)


class CharsError(ValueError):
    """A text that is no set or shape."""


def _range(low: str, high: str) -> str:
    for letters in _CLASSES.values():
        if low in letters and high in letters and low <= high:
            return letters[letters.index(low) : letters.index(high) + 1]
    raise CharsError("a range goes up within one class, as in `A-Z`, `a-f` or `0-4`")


@dataclass(frozen=True)
class CharSet:
    """A set of ASCII letters, digits and a few other characters."""

    symbols: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> CharSet:
        """Reads a set, such as ``A-Z0-9_-``.

        Raises:
            CharsError: the fault.
        """
        symbols: set[str] = set()
        at = 0
        while at < len(text):
            found = _RANGE.match(text, at)
            if found:
                symbols.update(_range(found[1], found[2]))
                at = found.end()
                continue
            if text[at] not in _ALLOWED or (text[at] == "-" and at + 1 < len(text)):
                raise CharsError("a set has letters, digits and `+` `,` `-` `:` `@` `_`; `-` stands at its end")
            symbols.add(text[at])
            at += 1
        if not symbols:
            raise CharsError("name at least one character, as in `A-Z0-9`")
        return cls(frozenset(symbols))

    def fit(self, text: str) -> Fit:
        """Fit of a text to the condition to consist of these characters, of which a letter or digit is the first."""
        if text[:1] in _ALNUM and self.symbols.issuperset(text):
            return Fit.HELD
        return _read_otherwise(text, self.symbols.issuperset)

    def __str__(self) -> str:
        shown = ""
        for letters in _CLASSES.values():
            runs = "".join(one if one in self.symbols else " " for one in letters).split()
            shown += "".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else run for run in runs)
        shown += "".join(one for one in _PUNCTUATION if one != "-" and one in self.symbols)
        return shown + ("-" if "-" in self.symbols else "")


def _read_otherwise(text: str, fits: Callable[[str], bool]) -> Fit:
    """Failed, or unclear if a text may fit after a reader has normalised it."""
    read = likeness(text)
    return Fit.UNCLEAR if read is None or fits(read) or fits(read.upper()) else Fit.FAILED


def parse_shape(text: str) -> str:
    """Reads a shape: runs of letters and digits, ``A`` for upper case, ``a`` for lower case, ``9`` for digits.

    Raises:
        CharsError: it is none.
    """
    is_known = all(one in _CLASSES or one in _PUNCTUATION for one in text)
    repeats = any(one == other and one in _CLASSES for one, other in zip(text, text[1:]))
    if not is_known or repeats or text[:1] not in _CLASSES or len(text) > CHARS_MAX:
        raise CharsError("a shape has runs `A`, `a` and `9`, and characters between them, as in `A-9`")
    return text


def shape_of(text: str) -> str | None:
    """The shape of a text, if it has one."""
    if not _ALLOWED.issuperset(text):
        return None
    shape = ""
    for one in text:
        sign = next((sign for sign, letters in _CLASSES.items() if one in letters), one)
        if sign not in _CLASSES or not shape.endswith(sign):
            shape += sign
    try:
        return parse_shape(shape)
    except CharsError:
        return None


def fit_shape(shapes: Collection[str], text: str) -> Fit:
    """Fit of a text to the condition to have one of these shapes."""
    if shape_of(text) in shapes:
        return Fit.HELD
    return _read_otherwise(text, lambda read: shape_of(read) in shapes)
