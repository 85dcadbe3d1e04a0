"""Kinds of envelopes: ``HEAD[:METHOD[:CONTEXT]]`` (MCPx v0.1, sections 3 and 4; Decision 002)."""

from __future__ import annotations

from dataclasses import dataclass

REQUEST = "mcp/request"
RESPONSE = "mcp/response"
PROPOSAL = "mcp/proposal"
CHAT = "chat"

SYSTEM = "system:gateway"
"""The sender of the gateway's own messages: welcome, presence, errors."""
GATEWAY = "portmoot"
"""The participant that has the gateway's tools."""


class KindError(ValueError):
    """A text that is no kind."""


@dataclass(frozen=True)
class Kind:
    """A kind in its parts."""

    head: str
    method: str | None = None
    context: str | None = None

    @classmethod
    def parse(cls, text: str) -> Kind:
        """Reads a kind. It is cut at the first two colons only: a context keeps the colons of its URI."""
        if not text.startswith("mcp/"):
            if not text or text.startswith(":"):
                raise KindError("a kind needs a first part, such as `chat` or `mcp/request`")
            if "*" in text:
                raise KindError("a kind names one kind of message: `*` belongs in a capability")
            return cls(text)
        head, *rest = text.split(":", 2)
        if not rest:
            raise KindError("a kind under `mcp/` needs a method, as in `mcp/request:tools/call`")
        return cls.of(head, rest[0], rest[1] if len(rest) > 1 else None)

    @classmethod
    def of(cls, head: str, method: str, context: str | None) -> Kind:
        """The kind of an MCP message."""
        if head == "mcp/":
            raise KindError("a kind needs a first part, such as `chat` or `mcp/request`")
        if not method:
            raise KindError("a kind under `mcp/` needs a method, as in `mcp/request:tools/call`")
        if "*" in head or ("*" in method and ":" not in method.split("*")[0]):
            raise KindError("a kind names one kind of message: `*` belongs in a capability")
        if ":" in method:
            raise KindError("a method cannot hold a colon")
        if context == "":
            raise KindError("the part after the last colon is empty")
        return cls(head, method, context)

    @property
    def is_reserved(self) -> bool:
        """Whether only the gateway may send it."""
        return is_reserved(self.head)

    def answers(self, request: Kind) -> bool:
        """Whether a response of this kind can answer that request: the same method, and the same context unless one has none."""
        return (
            self.head == RESPONSE
            and request.head == REQUEST
            and self.method == request.method
            and (self.context is None or request.context is None or self.context == request.context)
        )

    def __str__(self) -> str:
        return ":".join(part for part in (self.head, self.method, self.context) if part is not None)


def is_reserved(head: str) -> bool:
    """Whether this head lies in the gateway's own space."""
    return any(head == own or head.startswith((own + "/", own + ":")) for own in ("system", "presence"))
