"""Protocol state machine of a participant: the effects of each envelope (MCPx v0.1, 4.3 and 8.2).

It has no socket and no clock. It delivers to pending requests and proposals; everything else that follows from an envelope is
returned as a reaction.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from . import _capability, _json, events
from ._capability import Capability
from ._check import Call, Mismatch, Proposed, Request, chat, id_in, strict
from ._envelope import Envelope, EnvelopeError
from ._kind import CHAT, GATEWAY, PROPOSAL, REQUEST, RESPONSE, SYSTEM, Kind, KindError
from ._pending import Match, PendingCalls, State, View
from .errors import RpcError, SystemError

log = logging.getLogger("portmoot")

PROPOSAL_STATE = "portmoot/proposal"
"""The kind in which the gateway reports the state of a proposal to its proposer."""
VIOLATORS_MAX = 1024
"""Participants whose violations are counted; those of further ones are not."""
RECENT_ENVELOPES_MAX = 4096
"""Envelopes whose duplicate is recognized; older ones are forgotten."""
RECENT_PROPOSALS_MAX = 1024
"""Proposals whose proposer is known; older ones are forgotten."""
_INVALID_REQUEST = -32600


@dataclass(frozen=True)
class Cursor:
    """A place in the history of a topic, as the latest welcome gave it."""

    epoch: int
    """The number of the gateway process that assigns the offsets."""
    offset: int


@dataclass(frozen=True)
class Fulfils:
    """The proposal that a request fulfils."""

    proposal: str
    proposer: str | None
    """``None`` if this participant has not received the proposal."""


@dataclass(frozen=True)
class ReplyTo:
    """The receiver of an answer."""

    to: tuple[str, ...]
    kind: str
    envelope_id: str
    rpc_id: str


@dataclass(frozen=True)
class Job:
    """A request to run and answer."""

    envelope: Envelope
    call: Call
    fulfils: Fulfils | None
    reply_to: ReplyTo


@dataclass(frozen=True)
class Refuse:
    """A request to answer with this error at once."""

    reply_to: ReplyTo
    error: RpcError


Reaction: TypeAlias = "events.Event | Job | Refuse"


class Protocol:
    """The state of one participant's protocol."""

    def __init__(self, *, is_filtered: bool, id_prefix: str, cursor: Cursor | None) -> None:
        self.you: events.ParticipantInfo | None = None
        self.others: dict[str, events.ParticipantInfo] = {}
        self.pending = PendingCalls()
        self.violations: dict[str, int] = {}
        self.cursor = cursor
        self._allowed: tuple[Capability, ...] = ()
        self._welcomes = 0
        self._is_filtered = is_filtered
        self._id_prefix = id_prefix
        self._recent: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._proposers: OrderedDict[str, str] = OrderedDict()

    @property
    def id(self) -> str:
        """The id of this participant; empty before the first welcome."""
        return "" if self.you is None else self.you.id

    def allows(self, kind: str, to: tuple[str, ...]) -> bool:
        """Whether the latest welcome allows this."""
        return _capability.admits(self._allowed, kind, to)

    def disconnected(self) -> None:
        """Fails pending requests: the connection is lost."""
        self._welcomes = 0
        self.pending.fail_requests()

    def receive(self, envelope: Envelope) -> list[Reaction]:
        """Processes one envelope."""
        if envelope.sender == SYSTEM:
            return self._system(envelope)
        if self._is_duplicate(envelope):
            return []
        try:
            kind = Kind.parse(envelope.kind)
        except KindError as error:
            return self._violation(envelope, str(error))
        if kind.is_reserved:
            return self._violation(envelope, "this kind is reserved for the gateway")
        if kind.head == REQUEST:
            return self._request(envelope)
        if kind.head == PROPOSAL:
            return self._proposal(envelope)
        if kind.head == RESPONSE:
            try:
                delivered = self.pending.deliver(envelope, self.id, self._view())
            except Mismatch as error:
                return self._violation(envelope, str(error))
            return [] if delivered is Match.DELIVERED else [events.Other(envelope)]
        return self._plain(envelope)

    # The gateway's own messages.

    def _system(self, envelope: Envelope) -> list[Reaction]:
        try:
            payload = envelope.payload
            if envelope.kind == "system/welcome":
                return self._welcome(payload, envelope.payload_text)
            if envelope.kind == "system/presence":
                return self._presence(payload)
            if envelope.kind == "system/error":
                error = _system_error(payload)
                if self.pending.refuse(envelope.correlation_id, error):
                    return []
                return [events.Refused(envelope.correlation_id, error)]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.warning("an envelope of the gateway (%s) cannot be read: %r", envelope.kind, error)
        return []

    def _welcome(self, payload: Mapping[str, Any], text: str) -> list[Reaction]:
        you = _participant(payload["you"])
        others = tuple(_participant(one) for one in payload["participants"])
        history = payload.get("history")
        place = None if history is None else Cursor(int(history["epoch"]), int(history["offset"]))
        self._welcomes += 1
        self.you, self._allowed = you, you.allowed()
        self.others = {one.id: one for one in others}
        reactions: list[Reaction] = [events.Welcomed(you, others)]
        if history is not None and place is not None:
            returns, self.cursor = self.cursor is not None, place
            written = _json.members(_json.members(text)["history"].raw)["envelopes"].raw
            past = tuple(self._history(_json.elements(written)))
            is_cut = returns and not history["complete"]
            if past or is_cut:
                reactions.append(events.History(past, is_cut))
        return reactions

    def _history(self, envelopes: list[str]) -> list[events.Event]:
        past = []
        for written in envelopes:
            try:
                envelope = Envelope.read(written)
            except EnvelopeError:
                continue
            is_own = envelope.sender == self.id and envelope.id.startswith(self._id_prefix)
            if not is_own and not self._is_duplicate(envelope):
                past.append(self._past(envelope))
        return past

    def _past(self, envelope: Envelope) -> events.Event:
        """The event of an envelope from before this connection. It may answer what is pending, and nothing is run."""
        try:
            head = Kind.parse(envelope.kind).head
            if head == REQUEST:
                self.pending.add_fulfilment(envelope, self.id)
            elif head == RESPONSE:
                self.pending.deliver(envelope, self.id, self._view())
            elif head == PROPOSAL:
                act = strict(envelope.kind, envelope.payload_text)
                if isinstance(act, Proposed):
                    self._add_proposal(envelope)
                    return events.Proposed(envelope, act.call)
            else:
                return self._read_plain(envelope) or events.Other(envelope)
        except (KindError, Mismatch):
            pass
        return events.Other(envelope)

    def _presence(self, payload: Mapping[str, Any]) -> list[Reaction]:
        seen = _participant(payload["participant"])
        if payload["event"] == "leave":
            self.others.pop(seen.id, None)
            return [events.Left(seen)]
        if payload["event"] != "join":
            raise ValueError(payload["event"])
        if seen.id == self.id:
            is_here = self._welcomes > 1
        else:
            is_here = seen.id in self.others
            self.others[seen.id] = seen
        return [events.Changed(seen) if is_here else events.Joined(seen)]

    # Messages of participants.

    def _request(self, envelope: Envelope) -> list[Reaction]:
        """A request is run only if it names this participant and its kind agrees with its payload."""
        reactions: list[Reaction] = []
        try:
            self.pending.add_fulfilment(envelope, self.id)
        except Mismatch as error:
            reactions = self._violation(envelope, str(error))
        if not self.id or self.id not in envelope.to:
            return reactions or [events.Other(envelope)]
        try:
            act = strict(envelope.kind, envelope.payload_text)
        except Mismatch as error:
            rpc_id = id_in(envelope.payload_text)
            reactions += self._violation(envelope, str(error))
            if rpc_id is not None:
                kind = RESPONSE + envelope.kind.removeprefix(REQUEST)
                reply_to = ReplyTo((envelope.sender,), kind, envelope.id, rpc_id)
                reactions.append(Refuse(reply_to, RpcError(_INVALID_REQUEST, str(error))))
            return reactions
        if isinstance(act, Request):
            rpc_id = act.call.rpc_id
            reactions.append(events.Other(envelope) if rpc_id is None else self._job(envelope, act.call, rpc_id))
        return reactions

    def _job(self, envelope: Envelope, call: Call, rpc_id: str) -> Job:
        to = [envelope.sender]
        fulfils = None
        if envelope.correlation_id is not None:
            fulfils = Fulfils(envelope.correlation_id, self._proposers.get(envelope.correlation_id))
            if fulfils.proposer is not None and fulfils.proposer != envelope.sender:
                to.append(fulfils.proposer)
        try:
            kind = call.kind(RESPONSE)
        except KindError:
            # A target that cannot be part of a kind is left out.
            kind = f"{RESPONSE}:{call.method}"
        return Job(envelope, call, fulfils, ReplyTo(tuple(to), kind, envelope.id, rpc_id))

    def _proposal(self, envelope: Envelope) -> list[Reaction]:
        try:
            act = strict(envelope.kind, envelope.payload_text)
        except Mismatch as error:
            return self._violation(envelope, str(error))
        if not isinstance(act, Proposed):
            return []
        self._add_proposal(envelope)
        return [events.Proposed(envelope, act.call)]

    def _plain(self, envelope: Envelope) -> list[Reaction]:
        if envelope.kind == PROPOSAL_STATE and envelope.sender != GATEWAY:
            return self._violation(envelope, "only the gateway reports the state of proposals")
        try:
            return [self._read_plain(envelope) or events.Other(envelope)]
        except Mismatch as error:
            return self._violation(envelope, str(error))

    def _read_plain(self, envelope: Envelope) -> events.Event | None:
        if envelope.kind == CHAT:
            text, format = chat(envelope.payload_text)
            return events.Chat(envelope.sender, text, format, envelope)
        if envelope.kind == PROPOSAL_STATE and envelope.sender == GATEWAY:
            return self._state(envelope)
        return None

    def _state(self, envelope: Envelope) -> events.Event | None:
        payload = envelope.payload
        proposal, state, to = payload.get("proposal"), payload.get("state"), envelope.to[:1]
        if not isinstance(proposal, str) or state not in events.STATES or not to:
            return None
        absent = payload.get("absent") or []
        changed = events.ProposalChanged(
            proposal=proposal,
            to=to[0],
            state=str(state),
            operation=_optional(payload.get("operation")),
            by=_optional(payload.get("by")),
            reason=_optional(payload.get("reason")),
            fulfilment=_optional(payload.get("fulfilment")),
            edited=payload.get("edited") is True,
            absent=tuple(str(one) for one in absent) if isinstance(absent, list) else (),
            claims=events.claims_in(payload),
            notes=events.notes_in(payload),
        )
        if changed.to == self.id:
            state = State(changed.state, changed.reason)
            for answer in self.pending.update_state(proposal, state, changed.by, changed.fulfilment):
                self.pending.deliver(answer, self.id, self._view())
        return changed

    # Memory of others.

    def _view(self) -> View:
        # A gateway that reports the state of proposals is a participant of the topic itself.
        return View(self._is_filtered, GATEWAY in self.others)

    def _violation(self, envelope: Envelope, why: str) -> list[Reaction]:
        if envelope.sender in self.violations or len(self.violations) < VIOLATORS_MAX:
            self.violations[envelope.sender] = self.violations.get(envelope.sender, 0) + 1
        return [events.Violation(envelope.sender, envelope.id, why)]

    def _is_duplicate(self, envelope: Envelope) -> bool:
        key = (envelope.sender, envelope.id)
        if key in self._recent:
            return True
        self._recent[key] = None
        if len(self._recent) > RECENT_ENVELOPES_MAX:
            self._recent.popitem(last=False)
        return False

    def _add_proposal(self, envelope: Envelope) -> None:
        """Of two with the same id, the first one counts."""
        if envelope.id not in self._proposers:
            self._proposers[envelope.id] = envelope.sender
            if len(self._proposers) > RECENT_PROPOSALS_MAX:
                self._proposers.popitem(last=False)


def _optional(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise ValueError("expected an array of strings")
    return tuple(values)


def _participant(read: Mapping[str, Any]) -> events.ParticipantInfo:
    id = read["id"]
    if not isinstance(id, str):
        raise ValueError("a participant's id is a string")
    narrowed = tuple((str(one["kind"]), _texts(one["to"])) for one in read.get("narrowed", []))
    return events.ParticipantInfo(id, _texts(read.get("capabilities", [])), narrowed)


def _system_error(read: Mapping[str, Any]) -> SystemError:
    capabilities, retry = read.get("your_capabilities"), read.get("retry_after_ms")
    return SystemError(
        error=str(read["error"]),
        message=str(read["message"]),
        attempted_kind=_optional(read.get("attempted_kind")),
        your_capabilities=None if capabilities is None else _texts(capabilities),
        retry_after_ms=retry if isinstance(retry, int) else None,
        scope=_optional(read.get("scope")),
    )
