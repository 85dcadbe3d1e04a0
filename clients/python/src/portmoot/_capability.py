"""Capabilities: patterns for kinds, as a welcome lists them (MCPx v0.1, section 4; Decision 002).

They only choose between a request and a proposal: the gateway decides. Where this module cannot be sure, it says no.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ._kind import Kind, KindError, is_reserved

_BYTES_MAX = 2048
_PERCENT_LAYERS_MAX = 3
_LIKE_SLASHES = "/\\?#\u2215\u2044\u29f8\u2571\u2216\u29f5\u29f9\u2572\xa5\u20a9"
_PERCENT = re.compile("%([0-9A-Fa-f]{2})?")
# Characters that are not drawn although their category is that of a letter, a mark or a symbol.
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\u2800\U000e0000-\U000e0fff]")


class CapabilityError(ValueError):
    """A text that is no capability."""


def _matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches a pattern in which ``*`` stands for any run of characters. The texts between the stars are
    searched once, from left to right: a regular expression would try all ways to divide a long name."""
    first, *pieces = pattern.split("*")
    if not pieces:
        return text == pattern
    *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _covers(pattern: str | None, part: str | None) -> bool:
    if pattern is None or pattern == "*":
        return True
    return part is not None and _matches(pattern, part)


@dataclass(frozen=True)
class Capability:
    """One capability. A part that is left out matches anything; ``*`` stays inside its part."""

    head: str
    method: str | None = None
    context: str | None = None
    to: tuple[str, ...] | None = None

    @classmethod
    def parse(cls, text: str, to: Iterable[str] | None = None) -> Capability:
        """Reads a capability, for these addressees only if there are some."""
        addressees = None if to is None else tuple(to)
        if len(text.encode("utf-8", "surrogatepass")) > _BYTES_MAX or "**" in text or not text or text.startswith(":"):
            raise CapabilityError(f"{text!r} is no capability")
        if addressees is not None and (not addressees or any(not name or "**" in name for name in addressees)):
            raise CapabilityError("the addressees of a capability are names, at least one")
        if not text.startswith("mcp/"):
            name = text.removesuffix("/*") if text.endswith("/*") else text
            if "*" in name or not name or is_reserved(text):
                raise CapabilityError(f"{text!r} is no capability")
            return cls(text, to=addressees)
        head, *parts = text.split(":", 2)
        context = parts[1] if len(parts) > 1 else None
        if head == "mcp/" or "" in parts:
            raise CapabilityError(f"{text!r} is no capability")
        if context is not None and ".." in re.split(r"[/\\]", context):
            raise CapabilityError(f"{text!r} is no capability")
        if context is not None and len(context) > 1 and "*" in context and not _is_plain_uri(context.replace("*", "x")):
            raise CapabilityError(f"{text!r} matches no request")
        return cls(head, parts[0] if parts else None, context, addressees)

    def admits(self, kind: Kind, to: Sequence[str] = ()) -> bool:
        """Whether it admits an envelope of this kind to these addressees."""
        return (
            not kind.is_reserved
            and _matches(self.head, kind.head)
            and not ("*" in self.head and ":" in kind.head)
            and _covers(self.method, kind.method)
            and _covers(self.context, kind.context)
            and not self._is_misled(kind.context)
            and self._reaches(to)
        )

    def _is_misled(self, context: str | None) -> bool:
        partial = self.context is not None and "*" in self.context and self.context != "*"
        return partial and context is not None and not _is_plain_uri(context)

    def _reaches(self, to: Sequence[str]) -> bool:
        if self.to is None:
            return True
        names = self.to
        return bool(to) and all(any(_matches(name, one) for name in names) for one in to)


def admits(capabilities: Iterable[Capability], kind: str, to: Sequence[str]) -> bool:
    """Whether one of these admits an envelope of this kind to these addressees."""
    try:
        parsed = Kind.parse(kind)
    except KindError:
        return False
    return any(one.admits(parsed, to) for one in capabilities)


def _is_plain_uri(text: str) -> bool:
    """Whether every reader of URIs and paths reads the text alike; a wildcard beside other characters matches nothing else."""
    for layer in range(_PERCENT_LAYERS_MAX + 1):
        if not _is_plain(text):
            return False
        text = unicodedata.normalize("NFKC", text)
        if not _is_plain(text):
            return False
        if "%" not in text:
            return True
        found = [match[1] for match in _PERCENT.finditer(text)]
        if None in found:
            return layer > 0
        if any(chr(int(digits, 16)) in "./\\" for digits in found):
            return False
        decoded = _PERCENT.sub(lambda match: chr(int(match[1], 16)) if int(match[1], 16) < 128 else match[0], text)
        raw = b"".join(
            bytes([int(piece[1:], 16)]) if piece.startswith("%") and len(piece) == 3 else piece.encode()
            for piece in re.split("(%[0-9A-Fa-f]{2})", decoded)
        )
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return False
    return False


def _is_plain(text: str) -> bool:
    if not text:
        return True
    if text[0].isspace() or text[-1].isspace() or any(_is_hidden(one) for one in text):
        return False
    return not any(_is_dots(segment) for segment in re.split(f"[{re.escape(_LIKE_SLASHES)}]", text))


def _is_dots(segment: str) -> bool:
    name = segment.split(";")[0]
    blank = any(one.isspace() for one in name)
    return name in (".", "..") or ("." in name and blank and all(one == "." or one.isspace() for one in name))


def _is_hidden(one: str) -> bool:
    if one == " ":
        return False
    if one.isascii():
        return not one.isprintable()
    category = unicodedata.category(one)
    return category[0] == "C" or (one.isspace() and one != "\u3000") or _UNSEEN.match(one) is not None
