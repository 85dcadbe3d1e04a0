"""A call as rules see it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from .. import _json
from .._json import JsonError
from .._kind import REQUEST, Kind, KindError
from . import canonical
from .arguments import Arguments, ArgumentsError
from .canonical import BadJson, Node, TwiceInJson

if TYPE_CHECKING:
    from ..proposal import IncomingProposal

Stage = Literal["direct", "proposed"]
"""``direct``: its sender may make the call without approval, and only rules that reject or ask look at it. ``proposed``: it waits."""
_OF_PROTOCOL = "io.modelcontextprotocol/"
_OF_TRAVEL = ("progressToken", "traceparent", "tracestate")
_BY_NAME = ("tools/call", "prompts/get")


@dataclass(frozen=True)
class RuledCall:
    """A call or proposal, with all that rules may ask about it. Its arguments must be those that run."""

    operation: str
    """Its id. One that comes twice is counted once, so that it must be none that a proposer can choose."""
    proposer: str
    to: str
    """The participant that is to run it."""
    kind: str
    """The kind of its request, such as ``mcp/request:tools/call:create_issue``."""
    at_ms: int
    """The time, in milliseconds since 1970."""
    arguments: str | bytes = "{}"
    """The arguments as JSON, as they were written: a value that was read and written again may hide what readers read differently."""
    beside: tuple[str, ...] = ()
    """Names of members that the params have beside target and arguments. An approving rule matches no call with such a member."""
    definition: str | None = None
    """Digest of the target's definition as its server lists it now: :func:`definition_digest`."""
    server: str | None = None
    """Digest of the server's configured command or URL; of a participant that serves by itself, :func:`participant_digest`."""

    @classmethod
    def of(
        cls, proposal: IncomingProposal, *, at_ms: int, definition: str | None = None, server: str | None = None
    ) -> RuledCall | None:
        """The proposed call; ``None`` if it names no addressee, or several, or is none that a kind can name: then people decide."""
        if len(proposal.to) != 1:
            return None
        call = proposal.call
        arguments, beside = _parts(call.method, "{}" if call.params_text is None else call.params_text)
        try:
            kind = call.kind(REQUEST)
        except KindError:
            return None
        operation = f"{proposal.event.arrival} {proposal.id}"
        return cls(operation, proposal.sender, proposal.to[0], kind, at_ms, arguments, beside, definition, server)

    @cached_property
    def read(self) -> Arguments | ArgumentsError:
        """The arguments, or why they cannot be judged."""
        try:
            return Arguments.read(self.arguments)
        except ArgumentsError as error:
            return error

    @cached_property
    def parts(self) -> Kind | None:
        """The kind in its parts, if it is one of a request."""
        try:
            kind = Kind.parse(self.kind)
        except KindError:
            return None
        return kind if kind.head == REQUEST else None


def _parts(method: str, params: str) -> tuple[str, tuple[str, ...]]:
    """The arguments of a call as JSON, and the names of what its params have beside them. Params that are no object, or cannot be read
    in one way only, stand in for arguments, which cannot be judged then, either."""
    try:
        members = dict(canonical.read(_without_transport(params)).members or ())
    except (JsonError, BadJson, TwiceInJson):
        return params, ()
    arguments = members.pop("arguments", Node("{}"))
    members.pop("name" if method in _BY_NAME else "uri", None)
    return arguments.raw, tuple(members)


def _without_transport(params: str) -> str:
    """The params of a call without what concerns its transport: ``task`` (2025-11-25), and of ``_meta`` the progress token, the trace
    and the protocol's own keys."""
    members = _json.members_once(params)
    kept = {name: member.raw for name, member in members.items() if name != "task"}
    meta = members.get("_meta")
    if meta is not None and isinstance(meta.value, dict):
        keys = _json.members_once(meta.raw).items()
        own = {key: member.raw for key, member in keys if not (key.startswith(_OF_PROTOCOL) or key in _OF_TRAVEL)}
        del kept["_meta"]
        if own:
            kept["_meta"] = _json.write_object(own)
    return _json.write_object(kept)


def succeeded(result: Mapping[str, Any]) -> bool:
    """Whether a result is the one of the call itself and says of no error, as :meth:`RuleSet.answered` asks for: not that a task has
    begun, or that the caller is asked something."""
    return result.get("isError", False) is False and result.get("resultType", "complete") == "complete" and "task" not in result


def definition_digest(tool: Mapping[str, Any] | str) -> str | None:
    """The digest of a tool's definition as its server lists it, as rules name it; ``None`` if the definition cannot be read in one way
    only."""
    try:
        text = tool if isinstance(tool, str) else _json.write(tool)
        return hashlib.sha256(canonical.read(text).raw.encode()).hexdigest()
    except (BadJson, TwiceInJson, JsonError, UnicodeEncodeError):
        return None


def participant_digest(name: str) -> str:
    """What stands in for the digest of a server's configuration, of a participant that serves by itself: it has no command and no URL,
    and the gateway vouches for its name alone."""
    return hashlib.sha256(b"portmoot/participant/1\0" + name.encode("utf-8", "surrogatepass")).hexdigest()
