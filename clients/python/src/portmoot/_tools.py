"""Lists of tools, with each definition as it was written: a value that was read and written again may be another one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from . import _json
from ._check import Answer
from ._json import JsonError
from .errors import BadList
from .proposal import result


PAGES_MAX = 100
"""Pages of a list that are read to find a definition."""


async def definition_in(page_at: Callable[[str | None], Awaitable[Answer]], tool: str) -> str | None:
    """The definition of a tool in a list of which a function returns the page at a cursor.

    Raises:
        BadList: it has more than :data:`PAGES_MAX` pages, or cannot be read in one way only.
    """
    found: list[str] = []
    cursor: str | None = None
    for _ in range(PAGES_MAX):
        page = ToolPage.read(await page_at(cursor))
        found += page.definitions(tool)
        cursor = page.next
        if cursor is None:
            break
    else:
        raise BadList(f"the list of tools has more than {PAGES_MAX} pages")
    if len(found) > 1:
        raise BadList(f"the tool is there {len(found)} times in the list of tools")
    return found[0] if found else None


@dataclass(frozen=True)
class ToolPage:
    """A page of a list of tools."""

    tools: list[str]
    """The definitions, as they were written."""
    next: str | None
    """The cursor of the next page."""

    @classmethod
    def read(cls, answer: Answer) -> ToolPage:
        """Reads the answer to ``tools/list``.

        Raises:
            BadList: it is no list of tools.
            Answered: the answer is an error.
        """
        result(answer)
        try:
            page = _json.members_once(answer.result_text or "")
            tools = _json.elements(page["tools"].raw) if "tools" in page else None
        except JsonError as error:
            raise BadList(f"the list of tools cannot be read: {error}") from None
        if tools is None:
            raise BadList("the list of tools cannot be read: `tools` is missing")
        cursor = page.get("nextCursor")
        if cursor is not None and cursor.value is not None and cursor.text is None:
            raise BadList("the list of tools cannot be read: `nextCursor` is no text")
        return cls(tools, cursor.text if cursor else None)

    def definitions(self, name: str) -> list[str]:
        """The definitions of the tools of this name."""
        return [tool for tool in self.tools if _name(tool) == name]


def _name(tool: str) -> str | None:
    """The name of a tool; nothing, of what is no tool."""
    try:
        members = _json.members(tool)
    except JsonError:
        return None
    return members["name"].text if "name" in members else None
