"""Envelopes: the frame as it came, its members, and a writer (MCPx v0.1, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from . import _json
from ._json import JsonError, Members
from ._kind import PROPOSAL, RESPONSE

PROTOCOL = "mcpx/v0.1"
ID_BYTES_MAX = 256
"""The longest ``id`` or ``correlation_id``, in bytes of UTF-8."""
KIND_BYTES_MAX = 4096
"""The longest ``kind``, in bytes of UTF-8."""
PARTICIPANT_BYTES_MAX = 128
"""The longest name of a participant, in bytes of UTF-8."""
TO_MAX = 64
"""The most addressees of one envelope."""
_DEFINED = ("protocol", "id", "ts", "from", "to", "kind", "correlation_id", "payload")


class EnvelopeError(ValueError):
    """A text that is no envelope."""

    def __init__(self, message: str, code: str = "malformed_envelope") -> None:
        super().__init__(message)
        self.code = code
        """``malformed_envelope``, or ``unsupported_protocol``."""


@dataclass(frozen=True)
class Place:
    """The place of an envelope among all that were published in its topic."""

    epoch: int
    """The number of the gateway process that assigns the offsets."""
    offset: int
    """The offset, from 0 on."""
    received: str
    """When the gateway took it into the topic, as RFC 3339."""

    @classmethod
    def read(cls, frame: str) -> Place | None:
        """The place that an envelope has with it; nothing, where there is none."""
        try:
            member = _json.members(frame).get("portmoot/place")
        except JsonError:
            return None
        place = member.value if member is not None else None
        if not isinstance(place, dict):
            return None
        epoch, offset, received = place.get("epoch"), place.get("offset"), place.get("received")
        if isinstance(epoch, int) and isinstance(offset, int) and isinstance(received, str):
            return cls(epoch, offset, received)
        return None


@dataclass(frozen=True)
class Envelope:
    """An envelope. Texts of others may contain any character: escape them before you print them (:func:`portmoot.visible`)."""

    id: str
    sender: str
    """The member ``from``."""
    to: tuple[str, ...]
    """The addressees; empty for the whole topic."""
    kind: str
    correlation_id: str | None
    ts: str | None
    """The time of sending, as the sender wrote it; not checked."""
    payload_text: str = field(repr=False)
    """The payload, as it was written."""
    frame: str = field(repr=False)
    """The whole envelope, as it came."""

    @property
    def payload(self) -> dict[str, Any]:
        """The payload. Of a member that occurs twice, the last counts: only checked calls are free of such members."""
        payload: dict[str, Any] = _json.value(self.payload_text)
        return payload

    @classmethod
    def read(cls, frame: str, *, tolerant: bool = True) -> Envelope:
        """Reads an envelope.

        ``tolerant`` reads as participants do: ``correlation_id`` may be an array of one string, as later versions of the protocol
        write it.

        Raises:
            EnvelopeError: if it is no envelope.
        """
        try:
            _json.refuse_depth(frame)
            parts = _json.members(frame)
        except JsonError as error:
            raise EnvelopeError(str(error)) from None
        if parts.duplicate is not None:
            raise EnvelopeError(_json.twice(parts.duplicate))
        double = _json.double_of(parts, _DEFINED)
        if double is not None:
            raise EnvelopeError(double)
        if _string(parts, "protocol") != PROTOCOL:
            raise EnvelopeError(f'this gateway speaks "{PROTOCOL}" and no other', "unsupported_protocol")
        envelope = cls(
            id=_short(parts, "id", ID_BYTES_MAX),
            ts=_string(parts, "ts") if "ts" in parts else None,
            sender=_short(parts, "from", PARTICIPANT_BYTES_MAX),
            to=_addressees(parts),
            kind=_short(parts, "kind", KIND_BYTES_MAX),
            correlation_id=_correlation(parts, tolerant),
            payload_text=_payload(parts),
            frame=frame,
        )
        head = envelope.kind.split(":", 1)[0]
        if head == RESPONSE and envelope.correlation_id is None:
            raise EnvelopeError("a response needs `correlation_id`: the id of the request that it answers")
        if head == PROPOSAL and envelope.correlation_id is not None:
            raise EnvelopeError("a proposal must not have `correlation_id`")
        return envelope


def write(
    *, id: str, sender: str, to: Sequence[str], kind: str, correlation_id: str | None, payload: str
) -> str:
    """Writes an envelope, with the time of now. The payload is JSON already."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    members: Mapping[str, str | None] = {
        "protocol": _json.write(PROTOCOL),
        "id": _json.write(id),
        "ts": _json.write(now),
        "from": _json.write(sender),
        "to": _json.write(list(to)) if to else None,
        "kind": _json.write(kind),
        "correlation_id": None if correlation_id is None else _json.write(correlation_id),
        "payload": payload,
    }
    return _json.write_object(members)


def _string(parts: Members, key: str) -> str:
    if key not in parts:
        raise EnvelopeError(f"`{key}` is missing")
    text = parts[key].text
    if text is None:
        raise EnvelopeError(f"`{key}` must be a string")
    return text


def _fits(key: str, text: str, bytes_max: int) -> str:
    if not text:
        raise EnvelopeError(f"`{key}` must not be empty")
    if len(text.encode()) > bytes_max:
        raise EnvelopeError(f"`{key}` is longer than {bytes_max} bytes")
    return text


def _short(parts: Members, key: str, bytes_max: int) -> str:
    return _fits(key, _string(parts, key), bytes_max)


def _addressees(parts: Members) -> tuple[str, ...]:
    if "to" not in parts:
        return ()
    to = parts["to"].value
    wrong = EnvelopeError("`to` must be an array of participant ids")
    if not isinstance(to, list):
        raise wrong
    for one in to:
        if not _json.is_text(one) or not one or len(one.encode()) > PARTICIPANT_BYTES_MAX:
            raise wrong
    if len(to) > TO_MAX:
        raise EnvelopeError(f"`to` names more than {TO_MAX} participants")
    return tuple(to)


def _correlation(parts: Members, tolerant: bool) -> str | None:
    if "correlation_id" not in parts:
        return None
    value: Any = parts["correlation_id"].value
    if tolerant and isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str) or not _json.is_text(value):
        raise EnvelopeError("`correlation_id` must be a string")
    return _fits("correlation_id", value, ID_BYTES_MAX)


def _payload(parts: Members) -> str:
    if "payload" not in parts:
        raise EnvelopeError("`payload` is missing")
    if not isinstance(parts["payload"].value, dict):
        raise EnvelopeError("`payload` must be an object")
    return parts["payload"].raw
