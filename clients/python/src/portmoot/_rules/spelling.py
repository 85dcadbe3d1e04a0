"""Spelling of texts: what would need normalising, and which texts look or read alike.

Texts in ASCII are read exactly as the gateway reads them. Beyond ASCII the gateway knows which characters of Unicode look alike, and the
standard library does not: where this module cannot be sure, a text may look like any other one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space of Unicode."""
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_UNSEEN = re.compile(_HIDDEN.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
_MARKS = re.compile("[\u0300-\u036f]")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]+")
# Scripts of which one text may have letters together.
_TOGETHER = (frozenset({"Latin"}), frozenset({"Cyrillic"}), frozenset({"Greek"}), frozenset({"Han", "Kana"}), frozenset({"Han", "Hangul"}))
_EAST_ASIAN = tuple(together for together in _TOGETHER if "Han" in together)
_SCRIPTS = re.compile(
    r"(?P<Latin>LATIN (SMALL|CAPITAL) LETTER )|(?P<Cyrillic>CYRILLIC (SMALL|CAPITAL) LETTER )|(?P<Greek>GREEK (SMALL|CAPITAL) LETTER )"
    r"|(?P<Han>CJK UNIFIED IDEOGRAPH-)|(?P<Kana>(HIRAGANA|KATAKANA) LETTER )|(?P<Hangul>HANGUL SYLLABLE )"
)
_CONTROLS = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')


def is_hidden(symbol: str) -> bool:
    """Whether a character has no shape of its own, or changes how others are shown."""
    return _HIDDEN.match(symbol) is not None


def has_hidden(text: str) -> bool:
    """Whether a text has such a character."""
    return _HIDDEN.search(text) is not None


def _script(symbol: str) -> str | None:
    """The script of a character; nothing for those of ASCII that all scripts share; ``None`` if that is not known here."""
    if symbol.isascii():
        return "Latin" if symbol.isalpha() else ""
    found = _SCRIPTS.match(unicodedata.name(symbol, ""))
    return found.lastgroup if found else None


def _scripts(text: str) -> set[str | None]:
    return {_script(symbol) for symbol in set(text)} - {""}


def is_sure(text: str) -> bool:
    """Whether :func:`oddity` is as exact for this text as the gateway is."""
    return text.isascii() or None not in _scripts(text)


def is_nfc(text: str) -> bool:
    """Whether a text is in normal form NFC, as far as is known: a character that this Unicode does not know may not be."""
    return text.isascii() or (
        unicodedata.is_normalized("NFC", text) and not any(unicodedata.category(symbol) in ("Cn", "Cs") for symbol in text)
    )


def oddity(text: str) -> str | None:
    """Why a text can be read in several ways, if that is known."""
    if _UNSEEN.search(text):
        return "it holds a character that is not seen"
    if not is_nfc(text):
        return "it is not in normal form NFC"
    if mixes_scripts(text):
        return "it mixes scripts whose letters look alike"
    return None


def mixes_scripts(text: str) -> bool:
    """Whether a text has letters of several scripts that look alike, as far as is known."""
    return not text.isascii() and not _are_together(text, _TOGETHER)


def is_beside_latin(text: str) -> bool:
    """Whether the letters of a text, as far as they are known, may stand beside Latin ones in a name: they are East Asian."""
    return _are_together(text, _EAST_ASIAN)


def _are_together(text: str, all: Sequence[frozenset[str]]) -> bool:
    scripts = {one for one in _scripts(text) if one}
    return any(scripts <= together for together in all)


def is_compatibility_form(text: str) -> bool:
    """Whether a text is a compatibility form of another one."""
    return not text.isascii() and not unicodedata.is_normalized("NFKC", text)


def likeness(text: str) -> str | None:
    """A text as a careless reader may take it: without hidden characters and blanks at its ends, in lower case. Accents stand apart from
    their letters. ``None`` if that is not known here: then it may look like any text."""
    seen = _HIDDEN.sub("", text)
    if not seen.isascii():
        seen = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", seen).lower())
        if not _MARKS.sub("", seen).isascii():
            return None
    return seen.lower().strip(" .")


def may_look_alike(one: str | None, other: str | None) -> bool:
    """Whether texts of these likenesses may look alike. What has accents looks like nothing without; beside another one with accents
    that is not known."""
    if one is None or other is None:
        return True
    return one == other or not (one.isascii() or other.isascii())


def are_like(one: str, other: str) -> bool:
    """Whether two texts may look alike."""
    return may_look_alike(likeness(one), likeness(other))


def may_lie_within(one: str | None, outer: str | None) -> bool:
    """Whether a pointer of this likeness may be this outer one, or lead to a member inside of it."""
    if one is None or outer is None or not (one.isascii() or outer.isascii()):
        return True
    return is_within(one, outer)


def is_within(pointer: str, outer: str) -> bool:
    """Whether a pointer, as text, is this outer one, or leads to a member inside of it."""
    return pointer == outer or pointer.startswith(outer + "/")


def is_plain_name(text: str) -> bool:
    """Whether a text is a name that needs no quotes in a sentence."""
    return _PLAIN_NAME.fullmatch(text) is not None


def quote(text: str) -> str:
    """A text as a string of JSON, with the escapes that are required only."""
    return '"' + _TO_ESCAPE.sub(lambda found: _CONTROLS.get(found[0]) or f"\\u{ord(found[0]):04x}", text) + '"'


def line(text: str) -> str:
    """One line in which every hidden character is visible."""
    return _HIDDEN.sub(lambda found: f"\\u{{{ord(found[0]):x}}}", text)


def quoted(text: str) -> str:
    """A text in quotes, with every hidden character visible."""
    return quote(line(text))


def named(text: str) -> str:
    """A text as a sentence shows it: bare if it is a plain name, else quoted."""
    return text if is_plain_name(text) else quoted(text)


def either(names: Sequence[str]) -> str:
    """Several things in words: ``a, b or c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} or {names[-1]}"
