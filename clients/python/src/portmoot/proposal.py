"""Proposals: one's own, those of others for review, and the list of those that wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from ._check import Answer, Call
from ._pending import State, Unknown, Updates
from .errors import Answered, CallTimeout, Changed, Ended, NotProposed, Refused, SystemError, ToolFailed
from .events import Claim, Note, Proposed, claims_in, notes_in

if TYPE_CHECKING:
    from .participant import Participant

_GRACE_S = 2.0
"""How much later than the state ``completed`` or ``failed`` the answer may arrive."""

_FIRST_LOOK_S, _LAST_LOOK_S = 0.01, 1.0


class Proposal:
    """A proposal that this participant made. Forgetting it stops the waiting, not the proposal."""

    def __init__(self, participant: Participant, id: str, updates: Updates) -> None:
        self._participant = participant
        self._updates = updates
        self._ended: State | None = None
        self.id = id
        """The id of the proposal: that of its envelope."""

    async def outcome(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits for the result of the request that fulfils it, up to ``timeout`` seconds (by default the participant's
        ``proposal_timeout``).

        The wait continues through reconnects. After :class:`CallTimeout` the function may be called again.

        Raises:
            Answered: the answer is an error.
            Ended: the proposal was rejected or withdrawn, has expired, or was fulfilled without an answer that reached this
                participant.
            Refused: the gateway refused it.
            NotProposed: it was lost with a connection that broke.
            CallTimeout: there is no outcome yet.
        """
        limit = self._participant.proposal_timeout if timeout is None else timeout
        end = anyio.current_time() + limit
        while True:
            with anyio.CancelScope(deadline=end):
                update = await self._updates.next()
                if isinstance(update, Answer):
                    return self._over(update)
                if isinstance(update, SystemError):
                    self._forget()
                    raise Refused(update)
                if isinstance(update, Unknown):
                    self._forget()
                    raise NotProposed("the gateway does not have this proposal: it was lost with the connection; propose it anew")
                if update.state in ("completed", "failed"):
                    self._ended = update
                    end = min(end, anyio.current_time() + _GRACE_S)
                elif update.state not in ("pending", "running"):
                    self._forget()
                    raise Ended(update.state, update.reason)
                continue
            if self._ended is not None:
                self._forget()
                raise Ended(self._ended.state, self._ended.reason)
            raise CallTimeout("no outcome in time; the proposal still waits")

    async def amend(self, arguments: Mapping[str, Any]) -> None:
        """Replaces its arguments: :meth:`Participant.amend`."""
        await self._participant.amend(self.id, arguments)

    async def withdraw(self, reason: str = "") -> None:
        """Withdraws it, while it is pending.

        Raises:
            ToolFailed: it is decided already, or the gateway does not have it.
        """
        await self._participant.withdraw(self.id, reason)

    def _over(self, answer: Answer) -> dict[str, Any]:
        self._forget()
        return result(answer)

    def _forget(self) -> None:
        self._participant._forget(self.id)

    def __repr__(self) -> str:
        return f"Proposal({self.id!r})"

    def __del__(self) -> None:
        self._forget()


def result(answer: Answer) -> dict[str, Any]:
    """The result in an answer, or its error."""
    if answer.error is not None:
        code, message = answer.error.get("code"), answer.error.get("message")
        if not isinstance(code, int):
            raise Answered(-32603, "the answer cannot be read")
        raise Answered(code, str(message or ""), answer.error.get("data"))
    if not isinstance(answer.result, dict):
        raise Answered(-32603, "the answer is no object")
    return answer.result


@dataclass(frozen=True)
class IncomingProposal:
    """A proposal of another participant, for review. Kind and payload agree; nothing has run."""

    event: Proposed
    participant: Participant = field(repr=False)

    @property
    def id(self) -> str:
        """The id of the proposal: that of its envelope."""
        return self.event.id

    @property
    def sender(self) -> str:
        """The proposer."""
        return self.event.sender

    @property
    def to(self) -> tuple[str, ...]:
        """The participants that the call is for; empty if the proposer left it open."""
        return self.event.to

    @property
    def call(self) -> Call:
        """The proposed method and params."""
        return self.event.call

    @property
    def tool(self) -> str | None:
        """The tool that the call names."""
        return self.call.target if self.call.method == "tools/call" else None

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool."""
        return self.call.arguments

    async def fulfil(self, params: Mapping[str, Any] | None = None, *, note: str = "") -> dict[str, Any]:
        """Makes the call oneself, with the proposed params, or with these instead, and waits for the answer. The proposer gets
        the answer too, and the note, which all that receive the request see.

        Raises:
            CallError: as :meth:`Participant.request`; the gateway refuses other params than the proposed ones where it keeps the
                proposal, see :meth:`approve`.
        """
        return await self.participant._fulfil(self.event, params, note)

    async def approve(self, arguments: Mapping[str, Any] | None = None, *, note: str = "") -> str:
        """Has the gateway make the call on this participant's authority, perhaps with other arguments, which is recorded. The
        proposer gets the answer, and the note. Returns the state of the proposal.

        The gateway's proposal is compared with this one first.

        Raises:
            Changed: the gateway has another proposal under this id.
            ToolFailed: it is decided already, or this participant may not decide.
        """
        shown = await self._shown()
        same = (
            shown.get("by") == _escaped(self.sender, shown.get("by"))
            and shown.get("method") == self.call.method
            and _plain(shown.get("params", {})) == _plain(self.call.params)
            and sorted(map(str, shown.get("to", []))) == sorted(self.to)
        )
        if not same:
            raise Changed("the gateway has another proposal under this id; nothing was decided")
        return await self.participant._approve(str(shown["id"]), str(shown["digest"]), arguments, note)

    async def _shown(self) -> dict[str, Any]:
        """The proposal as the gateway has it. The envelope may arrive before the gateway has written the proposal down."""
        wait = _FIRST_LOOK_S
        while True:
            try:
                return await self.participant._gateway_tool("show_proposal", {"id": self.id})
            except ToolFailed as error:
                if not str(error).startswith("unknown_target") or wait > _LAST_LOOK_S:
                    raise
            await anyio.sleep(wait)
            wait *= 2

    async def claim(self) -> None:
        """Shows others that this participant looks at it: :meth:`Participant.claim`."""
        await self.participant.claim(self.id)

    async def extend(self) -> None:
        """Gives ten minutes more to decide: :meth:`Participant.extend`."""
        await self.participant.extend(self.id)

    async def reject(self, reason: str = "") -> None:
        """Rejects it, so that its proposer does not wait for it.

        Raises:
            ToolFailed: it is decided already, or this participant may not decide.
        """
        await self.participant.reject(self.id, reason)


@dataclass(frozen=True)
class LikeRule:
    """A rule that approves the like of a proposal; made by :meth:`Participant.like`, put in force by :meth:`Participant.add_rule`."""

    rule: str
    """Its id and version, such as ``like-5e1f0c32.1``."""
    topic: str
    sentence: str
    """All that it says, in English: what a person is asked to agree to."""
    text: str
    """Its text, as TOML."""
    tool: str | None = None
    """The tool's name, as it was typed."""


@dataclass(frozen=True)
class WaitingProposal:
    """A proposal that waits for a decision, as the gateway lists it: one's own, or one that this participant could decide.

    In texts of others, the gateway has written hidden characters as ``\\u{...}``.
    """

    id: str
    """Its id for the gateway, the API and the command line."""
    envelope: str
    """The id of the envelope that proposed, which the request that fulfils it has as ``correlation_id``."""
    state: str
    sender: str
    """The proposer."""
    to: tuple[str, ...]
    method: str
    target: str | None
    own: bool
    may_decide: bool
    params: dict[str, Any] | None
    """``None`` if it is too long for a list: :meth:`show` returns it."""
    tool: dict[str, Any] | None
    """The tool as its server describes it."""
    digest: str | None
    """What a decision is bound to; ``None`` if the proposal is too long for a list."""
    at: str | None
    expires: str | None
    participant: Participant = field(repr=False, compare=False)
    claims: tuple[Claim, ...] = ()
    """The participants that look at it."""
    notes: tuple[Note, ...] = ()
    """Notes that came with approvals."""

    @classmethod
    def _read(cls, listed: Mapping[str, Any], participant: Participant) -> WaitingProposal:
        return cls(
            id=str(listed["id"]),
            envelope=str(listed.get("envelope", "")),
            state=str(listed["state"]),
            sender=str(listed["by"]),
            to=tuple(map(str, listed["to"])),
            method=str(listed["method"]),
            target=listed.get("target"),
            own=bool(listed["own"]),
            may_decide=bool(listed["may_decide"]),
            params=listed.get("params"),
            tool=listed.get("tool"),
            digest=listed.get("digest"),
            at=listed.get("at"),
            expires=listed.get("expires"),
            participant=participant,
            claims=claims_in(listed),
            notes=notes_in(listed),
        )

    async def show(self) -> WaitingProposal:
        """The same proposal in full, as it is now."""
        shown = await self.participant._gateway_tool("show_proposal", {"id": self.id})
        return self._read(shown, self.participant)

    async def approve(self, arguments: Mapping[str, Any] | None = None, *, note: str = "") -> str:
        """Approves it as it was listed, perhaps with other arguments, which is recorded. The proposer gets the note. Returns its state.

        Raises:
            Changed: the list has it without its params; call :meth:`show`.
            ToolFailed: it has changed or is decided, or this participant may not decide.
        """
        if self.digest is None:
            raise Changed("the list has this proposal without its params: show() returns all of it")
        return await self.participant._approve(self.id, self.digest, arguments, note)

    async def claim(self) -> None:
        """Shows others that this participant looks at it: :meth:`Participant.claim`."""
        await self.participant.claim(self.id)

    async def extend(self) -> None:
        """Gives ten minutes more to decide: :meth:`Participant.extend`."""
        await self.participant.extend(self.id)

    async def like(self, *, hours: float = 1, uses: int = 20, when: str = "", tool: str | None = None) -> LikeRule:
        """Makes the rule that would approve the like of it: :meth:`Participant.like`."""
        return await self.participant.like(self.id, hours=hours, uses=uses, when=when, tool=tool)

    async def reject(self, reason: str = "") -> None:
        """Rejects it.

        Raises:
            ToolFailed: it is decided already, or this participant may not decide.
        """
        await self.participant.reject(self.id, reason)

    async def amend(self, arguments: Mapping[str, Any]) -> None:
        """Replaces its arguments: :meth:`Participant.amend`; only its proposer may."""
        await self.participant.amend(self.id, arguments)

    async def withdraw(self, reason: str = "") -> None:
        """Withdraws it; only its proposer may.

        Raises:
            ToolFailed: it is decided already, or another participant's.
        """
        await self.participant.withdraw(self.id, reason)


def _plain(value: Any) -> Any:
    """A value in which every character that the gateway may have escaped is written as it writes it."""
    if isinstance(value, str):
        return "".join(one if " " <= one <= "~" else f"\\u{{{ord(one):x}}}" for one in value)
    if isinstance(value, dict):
        return {_plain(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value


def _escaped(own: str, shown: Any) -> Any:
    return shown if _plain(own) == _plain(shown) else None


def tool_outcome(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a tool of the gateway."""
    if answer.get("isError"):
        content = answer.get("content") or [{}]
        raise ToolFailed(str(content[0].get("text", "the gateway's tool failed")))
    data = answer.get("structuredContent")
    return data if isinstance(data, dict) else {}
