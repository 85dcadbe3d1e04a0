"""Pending requests and proposals, and the envelopes that may answer them.

An answer counts only when its sender is in the request's ``to``, its JSON-RPC id is the request's and its kind fits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import anyio

from ._check import Answer, Mismatch, Request, answer_to, strict
from ._envelope import Envelope
from ._kind import GATEWAY, REQUEST, Kind, KindError
from .errors import Busy, CallError, Lost, Refused, SystemError

PENDING_MAX = 1024
"""Requests and proposals that may be pending at one time."""
_FULFILMENTS_MAX = 16
_UNPLACED_MAX = 64
"""Answers that came before the report which request they answer."""
_UPDATES_MAX = 16

Outcome: TypeAlias = "Answer | CallError"


class Slot:
    """The outcome of a request, once it is there."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._outcome: Outcome | None = None

    def settle(self, outcome: Outcome) -> None:
        if self._outcome is None:
            self._outcome = outcome
            self._event.set()

    async def wait(self) -> Answer:
        await self._event.wait()
        if isinstance(self._outcome, CallError):
            raise self._outcome
        assert self._outcome is not None
        return self._outcome


@dataclass
class PendingRequest:
    to: tuple[str, ...]
    kind: str
    rpc_id: str
    slot: Slot


@dataclass(frozen=True)
class State:
    """The state of a proposal, as the gateway reports it."""

    state: str
    reason: str | None


@dataclass(frozen=True)
class Unknown:
    """The gateway does not have the proposal."""


Update: TypeAlias = "Answer | State | SystemError | Unknown"


class Updates:
    """Updates of one proposal, for one reader; the oldest ones count."""

    def __init__(self) -> None:
        self._waiting: deque[Update] = deque()
        self._wake = anyio.Event()

    def push(self, update: Update) -> None:
        if len(self._waiting) < _UPDATES_MAX:
            self._waiting.append(update)
            self._wake.set()

    async def next(self) -> Update:
        while not self._waiting:
            self._wake = anyio.Event()
            await self._wake.wait()
        return self._waiting.popleft()


@dataclass
class _Fulfilment:
    by: str
    to: tuple[str, ...]


@dataclass
class PendingProposal:
    to: tuple[str, ...]
    kind: str
    """The kind of the request that fulfils it."""
    updates: Updates
    fulfilments: dict[str, _Fulfilment] = field(default_factory=dict)
    approved_by: str | None = None
    fulfilment: str | None = None
    """The request whose approval counted, once the gateway has reported it."""
    early: list[tuple[str, str | None, Answer]] = field(default_factory=list)
    """Answers that came before the report whose approval counted, each with its request and that one's sender."""

    def approved(self, by: str, fulfilment: str | None) -> None:
        self.approved_by = by
        self.fulfilment = fulfilment or self.fulfilment
        early, self.early = self.early, []
        for request_id, fulfiller, answer in early:
            if self.is_answered_by(request_id, fulfiller):
                self.updates.push(answer)

    def is_answered_by(self, request_id: str, fulfiller: str | None) -> bool:
        """Whether the answer to this request is the outcome."""
        if self.fulfilment is not None:
            return request_id == self.fulfilment
        return fulfiller is None or fulfiller == self.approved_by


class Match(Enum):
    """The relation of a response to what is pending."""

    DELIVERED = 1
    NONE = 2


@dataclass(frozen=True)
class View:
    """What a participant receives of its topic."""

    misses_fulfilments: bool
    reports_approvals: bool


class PendingCalls:
    """Everything that is pending."""

    def __init__(self) -> None:
        self.requests: dict[str, PendingRequest] = {}
        self.proposals: dict[str, PendingProposal] = {}
        self._unplaced: deque[Envelope] = deque(maxlen=_UNPLACED_MAX)

    def add_request(self, id: str, request: PendingRequest) -> None:
        self._check_limit()
        self.requests[id] = request

    def add_proposal(self, id: str, proposal: PendingProposal) -> None:
        self._check_limit()
        self.proposals[id] = proposal

    def _check_limit(self) -> None:
        if len(self.requests) + len(self.proposals) >= PENDING_MAX:
            raise Busy("too many requests are pending")

    def remove(self, id: str) -> None:
        self.requests.pop(id, None)
        self.proposals.pop(id, None)

    def fail_requests(self) -> None:
        """Fails every request, because the connection broke. Proposals stay pending; the gateway keeps them."""
        requests, self.requests = self.requests, {}
        for request in requests.values():
            request.slot.settle(Lost("the connection broke before the answer; the call may have been made"))

    def refuse(self, envelope_id: str | None, error: SystemError) -> bool:
        """Delivers an error of the gateway about this envelope. False when the envelope is not pending."""
        if envelope_id is None:
            return False
        request = self.requests.pop(envelope_id, None)
        if request is not None:
            request.slot.settle(Refused(error))
            return True
        proposal = self.proposals.get(envelope_id)
        if proposal is not None:
            proposal.updates.push(error)
            return True
        return False

    def update_state(self, id: str, state: State, by: str | None, fulfilment: str | None) -> tuple[Envelope, ...]:
        """Delivers the state of a proposal, as the gateway reports it, the participant that has decided, and the request that
        fulfils it. Returns the answers to that request which came before, to be delivered now."""
        proposal = self.proposals.get(id)
        if proposal is None:
            return ()
        if by is not None and state.state in ("running", "completed", "failed"):
            proposal.approved(by, fulfilment)
        proposal.updates.push(state)
        placed = tuple(one for one in self._unplaced if fulfilment is not None and one.correlation_id == fulfilment)
        for one in placed:
            self._unplaced.remove(one)
        return placed

    def add_fulfilment(self, request: Envelope, me: str) -> None:
        """Adds a request that names a pending proposal to its fulfilments, if it is the proposed call, of another participant, and to
        the proposed participants.

        Raises:
            Mismatch: when its kind and payload disagree.
        """
        proposal = self.proposals.get(request.correlation_id or "")
        if proposal is None:
            return
        act = strict(request.kind, request.payload_text)
        if not isinstance(act, Request):
            return
        try:
            is_same_call = act.call.kind(REQUEST) == proposal.kind
        except KindError:
            is_same_call = False
        # It may name the proposer too, so that the proposer gets it.
        is_addressed = (
            bool(request.to)
            and all(not proposal.to or one in proposal.to or one == me for one in request.to)
            and all(one in request.to for one in proposal.to)
        )
        if is_same_call and is_addressed and request.sender != me and len(proposal.fulfilments) < _FULFILMENTS_MAX:
            proposal.fulfilments[request.id] = _Fulfilment(request.sender, request.to)

    def deliver(self, response: Envelope, me: str, view: View) -> Match:
        """Delivers a response to the participant ``me``.

        Raises:
            Mismatch: when it names something that is pending, but violates the protocol.
        """
        request_id = response.correlation_id
        if request_id is None:
            return Match.NONE
        if request_id in self.requests:
            return self._answer_request(request_id, response, me)
        proposal = next((one for one in self.proposals.values() if request_id == one.fulfilment), None)
        if proposal is None:
            proposal = next((one for one in self.proposals.values() if request_id in one.fulfilments), None)
        if proposal is None and view.misses_fulfilments and me in response.to:
            fitting = self._fitting(response)
            if view.reports_approvals and fitting:
                # The report that a proposal runs names the request which fulfils it.
                self._unplaced.append(response)
            elif len(fitting) == 1:
                proposal = fitting[0]
        if proposal is None:
            return Match.NONE
        fulfilment = proposal.fulfilments.get(request_id)
        may_answer = proposal.to if fulfilment is None else fulfilment.to
        # The gateway may repeat an answer that left the proposer out; any participant may answer what names none.
        if response.sender != GATEWAY and may_answer and response.sender not in may_answer:
            raise Mismatch("it answers a request to others")
        answer = answer_to(proposal.kind, response)
        by = None if fulfilment is None else fulfilment.by
        if proposal.approved_by is not None:
            if not proposal.is_answered_by(request_id, by):
                return Match.NONE
            proposal.updates.push(answer)
        elif view.reports_approvals:
            if len(proposal.early) < _FULFILMENTS_MAX:
                proposal.early.append((request_id, by, answer))
        else:
            proposal.updates.push(answer)
        return Match.DELIVERED

    def _answer_request(self, id: str, response: Envelope, me: str) -> Match:
        request = self.requests[id]
        if response.sender not in request.to:
            raise Mismatch("it answers a request to others")
        if response.to and me not in response.to:
            raise Mismatch("it answers a request but does not name the requester")
        answer = answer_to(request.kind, response)
        # An error may lack an id, when the request's could not be read.
        if answer.rpc_id != request.rpc_id and not (answer.rpc_id is None and answer.error is not None):
            raise Mismatch("its payload answers another JSON-RPC id")
        del self.requests[id]
        request.slot.settle(answer)
        return Match.DELIVERED

    def _fitting(self, response: Envelope) -> list[PendingProposal]:
        """The proposals that this response may answer, by its sender and its kind."""
        try:
            kind = Kind.parse(response.kind)
            return [
                one
                for one in self.proposals.values()
                if (response.sender == GATEWAY or not one.to or response.sender in one.to)
                and kind.answers(Kind.parse(one.kind))
            ]
        except KindError:
            return []
