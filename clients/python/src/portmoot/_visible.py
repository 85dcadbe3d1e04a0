"""Safe text for people: agents show texts of others."""

from __future__ import annotations

from ._capability import _is_hidden


def visible(text: str) -> str:
    """The text with every control and hidden character written as ``\\u{...}``, so that it can forge nothing on a terminal.

    Line ends are written out too: the result is one line.
    """
    return "".join(f"\\u{{{ord(one):x}}}" if _is_hidden(one) else one for one in text)
