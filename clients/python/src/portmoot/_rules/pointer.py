"""JSON Pointers to the members of a call's arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import spelling

BYTES_MAX = 256
"""The longest pointer, in bytes."""
DEPTH_MAX = 6
"""The deepest member that a rule sees."""


class PointerError(ValueError):
    """A text that is no pointer."""


@dataclass(frozen=True, order=True)
class Pointer:
    """The place of a member in a call's arguments, such as ``/repo`` or ``/filter/state``."""

    text: str
    likeness: str | None = field(compare=False)

    @classmethod
    def parse(cls, text: str) -> Pointer:
        """Reads a pointer.

        Raises:
            PointerError: the fault.
        """
        if not text.startswith("/"):
            raise PointerError("a pointer to a member begins with `/`, as in `/repo`")
        if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
            raise PointerError(f"a pointer has at most {BYTES_MAX} bytes")
        if text.count("/") > DEPTH_MAX:
            raise PointerError(f"a pointer has at most {DEPTH_MAX} names")
        if any(not rest.startswith(("0", "1")) for rest in text.split("~")[1:]):
            raise PointerError("`~` is written `~0` in a pointer, and `/` in a name `~1`")
        if spelling.has_hidden(text) or not spelling.is_nfc(text):
            raise PointerError("a name in the pointer holds a hidden character, or is not in normal form NFC")
        return cls(text, spelling.likeness(text))

    def holds(self, other: Pointer) -> bool:
        """Whether another pointer is this one, or leads to a member inside of it."""
        return spelling.is_within(other.text, self.text)

    def is_like(self, other: Pointer) -> bool:
        """Whether a careless reader may take one pointer for the other, or for one that leads inside of it."""
        own, others = self.likeness, other.likeness
        return spelling.may_lie_within(own, others) or spelling.may_lie_within(others, own)

    def words(self) -> str:
        """The member as a sentence names it."""
        names = [name.replace("~1", "/").replace("~0", "~") for name in self.text.split("/")[1:]]
        if len(names) == 1 and spelling.is_plain_name(names[0]):
            return names[0]
        return spelling.quoted(self.text)


def member(place: str, key: str) -> str:
    """The pointer, as text, to a member of the object at a place."""
    return f"{place}/{key.replace('~', '~0').replace('/', '~1')}"
