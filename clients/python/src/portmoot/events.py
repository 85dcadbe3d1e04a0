"""Events of a participant: envelopes of others, and changes of the connection.

Texts of others may contain any character; :func:`portmoot.visible` makes them safe for a terminal.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, Union

from . import errors
from ._capability import Capability, CapabilityError
from ._check import Call
from ._envelope import Envelope
from ._kind import REQUEST


@dataclass(frozen=True)
class ParticipantInfo:
    """A participant, as a welcome or presence names it."""

    id: str
    capabilities: tuple[str, ...] = ()
    """Its capabilities, as texts; empty when it leaves."""
    narrowed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The capabilities that are limited to certain addressees, with these."""

    def allowed(self) -> tuple[Capability, ...]:
        """Its capabilities. A text that this version cannot read allows nothing."""
        limited = {kind for kind, _ in self.narrowed}
        found = [(text, None) for text in self.capabilities if text not in limited]
        allowed = []
        for text, to in [*found, *self.narrowed]:
            try:
                allowed.append(Capability.parse(text, to))
            except CapabilityError:
                continue
        return tuple(allowed)


@dataclass(frozen=True)
class Welcomed:
    """The participant is in the topic: after each connect, and again when its capabilities change."""

    you: ParticipantInfo
    others: tuple[ParticipantInfo, ...]


@dataclass(frozen=True)
class History:
    """Envelopes from before this connection, oldest first: after the first connect the latest ones, after another connect those that
    the participant has missed. No request among them was run."""

    past: tuple[Event, ...]
    """Each as the event that it would have been."""
    is_cut: bool
    """Whether the participant has missed more than these."""


@dataclass(frozen=True)
class Joined:
    """A participant joined the topic."""

    participant: ParticipantInfo


@dataclass(frozen=True)
class Changed:
    """The capabilities of a participant have changed."""

    participant: ParticipantInfo


@dataclass(frozen=True)
class Left:
    """A participant left the topic."""

    participant: ParticipantInfo


@dataclass(frozen=True)
class Chat:
    """A participant sent a chat message."""

    sender: str
    text: str
    format: str
    """``plain`` or ``markdown``."""
    envelope: Envelope


@dataclass(frozen=True)
class Proposed:
    """A participant proposed a call. Kind and payload agree. It must not be run because it was proposed."""

    envelope: Envelope
    call: Call
    arrival: int = field(default_factory=itertools.count(1).__next__, compare=False, repr=False)
    """Its number among the proposals that arrived in this process. Senders choose the ids of envelopes, and may choose one twice."""

    @property
    def id(self) -> str:
        """The proposal's id, which the request that fulfils it has as ``correlation_id``."""
        return self.envelope.id

    @property
    def sender(self) -> str:
        """The proposer."""
        return self.envelope.sender

    @property
    def to(self) -> tuple[str, ...]:
        """The participants that the call is for; empty if the proposer left it open."""
        return self.envelope.to

    @property
    def request_kind(self) -> str:
        """The kind of the request that fulfils it."""
        return self.call.kind(REQUEST)


@dataclass(frozen=True)
class Claim:
    """A participant that looks at a proposal."""

    by: str
    since: str
    """Since when, as RFC 3339."""


@dataclass(frozen=True)
class Note:
    """A note for the proposer, given with an approval."""

    by: str
    """The participant that approved."""
    note: str


def claims_in(proposal: Mapping[str, Any]) -> tuple[Claim, ...]:
    """The participants that look at a proposal, as the gateway writes it."""
    return tuple(Claim(str(one.get("by", "")), str(one.get("since", ""))) for one in _objects(proposal.get("claims")))


def notes_in(proposal: Mapping[str, Any]) -> tuple[Note, ...]:
    """The notes that came with approvals of a proposal, as the gateway writes it."""
    return tuple(Note(str(one.get("by", "")), str(one.get("note", ""))) for one in _objects(proposal.get("notes")))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


@dataclass(frozen=True)
class ProposalChanged:
    """A proposal changed its state, as the gateway reports it to the proposer and to all that receive proposals."""

    proposal: str
    """The proposal's id."""
    to: str
    """The proposer, which the report is addressed to."""
    state: str
    """``pending``, ``running``, ``completed``, ``failed``, ``rejected``, ``withdrawn`` or ``expired``."""
    operation: str | None = None
    """The id of the proposal for the API, the command line and :meth:`Participant.waiting`."""
    by: str | None = None
    """The participant that decided, if one did."""
    reason: str | None = None
    fulfilment: str | None = None
    """The id of the request that fulfils it, which its answer has as ``correlation_id``."""
    edited: bool = False
    """Whether it runs with other arguments than the proposed ones."""
    absent: tuple[str, ...] = ()
    """Of a pending proposal: participants that it names and that were not in the topic."""
    claims: tuple[Claim, ...] = ()
    """Of a pending proposal: participants that look at it."""
    notes: tuple[Note, ...] = ()
    """Notes that came with approvals."""


@dataclass(frozen=True)
class Refused:
    """The gateway refused an envelope that is neither a pending request nor a pending proposal."""

    envelope_id: str | None
    error: errors.SystemError


@dataclass(frozen=True)
class Other:
    """Any other envelope. Its payload was not checked against its kind."""

    envelope: Envelope


@dataclass(frozen=True)
class Violation:
    """A participant violated the protocol. Its envelope had no effect, and was counted."""

    sender: str
    envelope_id: str
    why: str


@dataclass(frozen=True)
class Disconnected:
    """The connection is lost. The participant reconnects unless this is final."""

    why: errors.ConnectError
    is_final: bool


@dataclass(frozen=True)
class Lagged:
    """This subscriber was too slow: so many of the oldest events were dropped."""

    count: int


Event: TypeAlias = Union[
    Welcomed,
    History,
    Joined,
    Changed,
    Left,
    Chat,
    Proposed,
    ProposalChanged,
    Refused,
    Other,
    Violation,
    Disconnected,
    Lagged,
]

STATES = ("pending", "running", "completed", "failed", "rejected", "withdrawn", "expired")


def size(event: Event) -> int:
    """Roughly how many characters an event occupies."""
    if isinstance(event, History):
        return 256 + sum(size(one) for one in event.past)
    if isinstance(event, Proposed):
        return 256 + 2 * len(event.envelope.frame)
    if isinstance(event, (Chat, Other)):
        return 256 + 2 * len(event.envelope.frame)
    if isinstance(event, Welcomed):
        return 256 + sum(len(text) for one in (event.you, *event.others) for text in (one.id, *one.capabilities))
    if isinstance(event, Violation):
        return 256 + len(event.why)
    return 256

