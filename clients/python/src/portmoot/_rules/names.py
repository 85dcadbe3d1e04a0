"""Names of participants, and patterns of them."""

from __future__ import annotations

import unicodedata

from .._capability import _is_hidden
from .._kind import GATEWAY
from . import spelling

NAME_BYTES_MAX = 128
"""The longest name of a participant, in bytes."""
PATTERN_BYTES_MAX = 512
"""The longest pattern of names, in bytes."""
_RESERVED = (GATEWAY, "rules", "system")


def participant(name: str) -> str:
    """Checks the name of a participant, as far as that can be known here: see :func:`is_sure`."""
    if not name:
        raise ValueError("the name is empty")
    if len(name.encode()) > NAME_BYTES_MAX:
        raise ValueError("the name is too long")
    if any(one in spelling.WHITE or _is_hidden(one) for one in name):
        raise ValueError("the name holds a character that is not allowed")
    if not name.isascii() and not unicodedata.is_normalized("NFKC", name):
        raise ValueError("the name has another normal form (NFKC), with which it could be confused")
    others = "".join(one for one in name if not (one.isascii() and one.isalpha()))
    if spelling.mixes_scripts(name) and not spelling.is_beside_latin(others):
        raise ValueError("the name mixes scripts, so that it can look like another name")
    if name != GATEWAY and name.lower().split(":")[0] in _RESERVED:
        raise ValueError("this name, or one that looks like it, belongs to the gateway")
    return name


def is_sure(name: str) -> bool:
    """Whether it is known that a name, if it was accepted, looks like no name of the gateway and has letters of one script."""
    return spelling.likeness(name) is not None


def pattern(text: str) -> str:
    """Checks a name in which ``*`` stands for any run of characters."""
    if not text:
        raise ValueError("a pattern cannot be empty")
    if len(text.encode()) > PATTERN_BYTES_MAX:
        raise ValueError(f"a pattern has at most {PATTERN_BYTES_MAX} bytes")
    if "**" in text:
        raise ValueError("write one `*`: it matches any run of characters")
    return text
