"""Constants of conditions: values of JSON in canonical form."""

from __future__ import annotations

from dataclasses import dataclass

from . import canonical, spelling
from .canonical import BadJson, Node, TwiceInJson

BYTES_MAX = 1024
"""The longest constant of a condition, in bytes of its canonical form."""
TYPES = ("null", "boolean", "number", "string", "array", "object")
"""The types of values, as JSON Schema names them."""
_FIRST = {"n": "null", "t": "boolean", "f": "boolean", '"': "string", "[": "array", "{": "object"}


class ConstantError(ValueError):
    """A value that is no constant."""


def type_of(raw: str) -> str:
    """The type of a value in canonical form."""
    return _FIRST.get(raw[0], "number")


@dataclass(frozen=True)
class Constant:
    """A value that a condition names."""

    node: Node
    is_sure: bool
    """Whether it is known that its strings can be read in one way only; a constant of which that is not known never holds."""

    @classmethod
    def parse(cls, json: str) -> Constant:
        """Reads a constant.

        Raises:
            ConstantError: the fault.
        """
        try:
            return cls.of_node(canonical.read(json))
        except TwiceInJson as error:
            raise ConstantError(f"the constant is not valid JSON: the member {spelling.quote(error.name)} occurs twice") from None
        except BadJson as error:
            raise ConstantError(f"the constant is not valid JSON: not valid JSON: {error}") from None

    @classmethod
    def of_node(cls, node: Node) -> Constant:
        """The constant that this value is, if it can be one."""
        if len(node.raw.encode()) > BYTES_MAX:
            raise ConstantError(f"a constant has at most {BYTES_MAX} bytes")
        texts = canonical.texts_in(node.raw)
        for text in texts:
            why = spelling.oddity(text)
            if why is not None:
                raise ConstantError(f"the constant can be read in several ways: {why}")
        return cls(node, all(spelling.is_sure(text) for text in texts))

    @property
    def raw(self) -> str:
        """The canonical text."""
        return self.node.raw

    def __str__(self) -> str:
        return canonical.shown(self.raw)
