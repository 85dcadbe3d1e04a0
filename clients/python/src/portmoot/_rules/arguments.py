"""Arguments of a call as leaves: every member with its place, or a reason why they cannot be read in one way only."""

from __future__ import annotations

from . import canonical, spelling
from .canonical import BadJson, Node, TwiceInJson
from .pointer import DEPTH_MAX, Pointer, PointerError, member

BYTES_MAX = 64 * 1024
"""The longest arguments that rules read, in bytes of their canonical form."""
LEAVES_MAX = 64
"""The most members of arguments that rules read, those of inner objects counted alone."""
ELEMENTS_MAX = 256
"""The most elements of an array that rules read."""


class ArgumentsError(ValueError):
    """Why arguments cannot be judged by their members. An approving rule never matches them."""


class Arguments:
    """The arguments of a call: its leaves, which are the members that are no object or an empty one, in the order of their pointers."""

    def __init__(self, leaves: dict[Pointer, Node]) -> None:
        self.leaves = dict(sorted(leaves.items(), key=lambda leaf: leaf[0].text))

    @classmethod
    def read(cls, text: str | bytes) -> Arguments:
        """Reads the arguments of a call; a call without arguments has ``{}``.

        Raises:
            ArgumentsError: readers could differ on them, or they exceed a limit.
        """
        node = _node(text)
        if node.members is None:
            raise ArgumentsError("the arguments are no object")
        if len(node.raw.encode()) > BYTES_MAX:
            raise ArgumentsError(f"the arguments are longer than {BYTES_MAX} bytes")
        leaves: dict[Pointer, Node] = {}
        _collect(node, "", 0, leaves)
        return cls(leaves)

    def get(self, pointer: Pointer) -> Node | None:
        """The value of a leaf."""
        return self.leaves.get(pointer)

    def has_another_like(self, pointer: Pointer) -> bool:
        """Whether another member is there that some reader may take for the one at a pointer."""
        return any(leaf != pointer and leaf.is_like(pointer) for leaf in self.leaves)


def _node(text: str | bytes) -> Node:
    try:
        return canonical.read(text.decode() if isinstance(text, bytes) else text)
    except TwiceInJson as error:
        name = spelling.quote(spelling.line(error.name))
        raise ArgumentsError(f"the member {name} occurs twice, so that readers may differ") from None
    except (BadJson, UnicodeDecodeError) as error:
        why = error if isinstance(error, BadJson) else "it is not in UTF-8"
        raise ArgumentsError(f"the arguments are not valid JSON: not valid JSON: {why}") from None


def _collect(node: Node, place: str, depth: int, leaves: dict[Pointer, Node]) -> None:
    for name, inner in node.members or ():
        at = member(place, name)
        if inner.members:
            if depth + 1 == DEPTH_MAX:
                raise ArgumentsError(f"the arguments are nested deeper than {DEPTH_MAX}")
            _collect(inner, at, depth + 1, leaves)
            continue
        if depth + inner.nesting > DEPTH_MAX:
            raise ArgumentsError(f"the arguments are nested deeper than {DEPTH_MAX}")
        if len(inner.elements or ()) > ELEMENTS_MAX:
            raise ArgumentsError(f"an array has more than {ELEMENTS_MAX} elements")
        if len(leaves) == LEAVES_MAX:
            raise ArgumentsError(f"the arguments have more than {LEAVES_MAX} members")
        try:
            leaves[Pointer.parse(at)] = inner
        except PointerError as error:
            raise ArgumentsError(f"the name of a member is not plain: {error}") from None
