"""Client for the topics of a Portmoot gateway: rooms for agents, tools and people (MCPx v0.1).

::

    async with portmoot.connect("http://127.0.0.1:7070", token=TOKEN, topic="main") as me:
        await me.chat("hello")
        result = await me.call_tool("worker", "echo", {"text": "hi"})

It runs under asyncio and trio. Envelopes of others are checked strictly before the participant acts on them (MCPx v0.1, 4.3).
"""

from . import errors, events
from ._check import Answer, Call, Mismatch, Other, Proposed, Request, check
from ._envelope import Envelope, EnvelopeError, Place
from ._protocol import Cursor, Fulfils
from ._queue import Events
from ._rules import (
    ExplainedCheck,
    Fit,
    Rule,
    RuleAnswer,
    RuledCall,
    RuleExplanation,
    RuleFileError,
    RuleSet,
    RuleSetError,
    Spent,
    definition_digest,
    participant_digest,
    succeeded,
)
from ._schema import SchemaError
from ._visible import visible
from .errors import (
    Answered,
    CallError,
    CallTimeout,
    ConnectError,
    Ended,
    Lost,
    NotAllowed,
    PortmootError,
    Refused,
    RpcError,
    ToolError,
)
from .events import ParticipantInfo
from .participant import CallMode, Mode, Participant, connect
from .proposal import IncomingProposal, LikeRule, Proposal, WaitingProposal
from .server import IncomingRequest, Server, ToolResult

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Answered",
    "Call",
    "CallError",
    "CallMode",
    "CallTimeout",
    "ConnectError",
    "Cursor",
    "Ended",
    "Envelope",
    "EnvelopeError",
    "Events",
    "ExplainedCheck",
    "Fit",
    "Fulfils",
    "IncomingProposal",
    "IncomingRequest",
    "LikeRule",
    "Lost",
    "Mismatch",
    "Mode",
    "NotAllowed",
    "Other",
    "Participant",
    "ParticipantInfo",
    "Place",
    "PortmootError",
    "Proposal",
    "Proposed",
    "Refused",
    "Request",
    "RpcError",
    "Rule",
    "RuleAnswer",
    "RuleExplanation",
    "RuleFileError",
    "RuleSet",
    "RuleSetError",
    "RuledCall",
    "SchemaError",
    "Server",
    "Spent",
    "ToolError",
    "ToolResult",
    "WaitingProposal",
    "check",
    "connect",
    "definition_digest",
    "errors",
    "events",
    "participant_digest",
    "succeeded",
    "visible",
]
