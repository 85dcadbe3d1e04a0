"""Exceptions. All of them are :class:`PortmootError`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class PortmootError(Exception):
    """The base of all exceptions of this package."""


class ConnectError(PortmootError):
    """The participant is not connected to its topic."""

    is_transient = False
    """Whether another attempt may succeed."""


class BadUrl(ConnectError):
    """The gateway's URL cannot be used."""


class Unreachable(ConnectError):
    """No connection could be opened."""

    is_transient = True


class Unauthenticated(ConnectError):
    """The gateway requires a token, or another one (401)."""


class Forbidden(ConnectError):
    """The participant may not join this topic (403)."""


class BadStatus(ConnectError):
    """The gateway answered with another status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the gateway answered with status {status}: {message}")
        self.status = status
        self.is_transient = status == 429 or status >= 500


class ConnectionBroken(ConnectError):
    """The connection broke or was closed, or no welcome arrived in time."""

    is_transient = True


class Replaced(ConnectError):
    """Another connection of the same participant replaced this one."""


class Closed(ConnectError):
    """The participant was closed from this side."""


class CallError(PortmootError):
    """A call, or an envelope, failed."""


class NotAllowed(CallError):
    """The latest welcome allows neither a request nor a proposal of this; nothing was sent."""


class InvalidEnvelope(CallError):
    """It cannot be written as a valid envelope; nothing was sent."""


class NotConnected(CallError):
    """There is no connection at the moment; nothing was sent."""


class Busy(CallError):
    """Too many envelopes wait to be sent, or too many requests to be answered; nothing was sent."""


@dataclass(frozen=True)
class SystemError:
    """An error of the gateway (MCPx v0.1, 3.5.2)."""

    error: str
    """The stable code, such as ``capability_violation``."""
    message: str
    """The cause, and what to do next."""
    attempted_kind: str | None = None
    your_capabilities: tuple[str, ...] | None = None
    retry_after_ms: int | None = None
    """The time after which a retry may succeed, in milliseconds."""
    scope: str | None = None
    """The scopes that an access token needs for it."""


class Refused(CallError):
    """The gateway refused the envelope."""

    def __init__(self, error: SystemError) -> None:
        super().__init__(f"the gateway refused it: {error.message} ({error.error})")
        self.error = error

    @property
    def code(self) -> str:
        """The stable code, such as ``capability_violation``."""
        return self.error.error


class Answered(CallError):
    """The answer is a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"answered with an error: {message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class CallTimeout(CallError, TimeoutError):
    """No answer arrived in time. The call may still have been made."""


class Lost(CallError):
    """The connection broke before the answer arrived. The call may have been made, and is never repeated."""


class Ended(CallError):
    """The proposal ended without an answer to it."""

    def __init__(self, state: str, reason: str | None) -> None:
        super().__init__(f"the proposal is {state}" + (f": {reason}" if reason else ""))
        self.state = state
        """``rejected``, ``withdrawn``, ``expired``, ``failed`` or ``completed``."""
        self.reason = reason
        """The reason that the reviewer or the gateway gave."""


class NotProposed(CallError):
    """The gateway does not have the proposal: the connection broke before it arrived, or before it was written down. Nothing was run."""


class BadList(CallError):
    """A list of another participant cannot be read: it is none, or its pages do not end."""


class ToolFailed(CallError):
    """A tool of the gateway, such as ``withdraw_proposal``, answered with an error in words."""


class Changed(CallError):
    """The proposal that waits is not the one that was shown: nothing was decided."""


class ToolError(PortmootError):
    """Raised by a tool: the caller's model reads the text (a result with ``isError``)."""


@dataclass(eq=False)
class RpcError(PortmootError):
    """Raised by what answers a request: the answer is this JSON-RPC error."""

    code: int
    message: str
    data: Any = field(default=None)

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"

    @classmethod
    def method_not_found(cls, method: str) -> RpcError:
        return cls(-32601, f"the method `{method}` is not supported")

    @classmethod
    def invalid_params(cls, message: str) -> RpcError:
        return cls(-32602, message)
