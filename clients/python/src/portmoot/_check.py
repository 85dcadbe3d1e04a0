"""Strict validation before a participant acts on an envelope: kind and payload must agree (MCPx v0.1, 4.3).

``docs/mcpx-vectors.json`` of the Portmoot project has the cases; the SDK for Rust is held by the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from . import _json
from ._envelope import Envelope, EnvelopeError
from ._json import JsonError, Members
from ._kind import CHAT, PROPOSAL, REQUEST, RESPONSE, Kind, KindError

_NAME, _URI, _REF, _TASK = "name", "uri", "ref", "taskId"
# The methods whose params name a target, and the member that names it.
_TARGETS = {
    "tools/call": _NAME,
    "prompts/get": _NAME,
    "resources/read": _URI,
    "resources/subscribe": _URI,
    "resources/unsubscribe": _URI,
    "resources/directory/read": _URI,
    "skills/get": _URI,
    "notifications/resources/updated": _URI,
    "completion/complete": _REF,
    "tasks/get": _TASK,
    "tasks/result": _TASK,
    "tasks/cancel": _TASK,
    "tasks/update": _TASK,
}
# Those that revision 2026-07-28 does not have.
_LEGACY_ONLY = {"resources/subscribe", "resources/unsubscribe", "tasks/result"}
_PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
_BAD_ID = "`id` must be a string or an integer"


class Mismatch(ValueError):
    """The payload of an envelope disagrees with its kind, or cannot be acted on."""


@dataclass(frozen=True)
class Call:
    """A call that a participant makes or proposes."""

    method: str
    target: str | None
    """The tool, prompt, resource or task that the params name, whether or not the kind names it too."""
    params_text: str | None
    """The params, as they were written."""
    rpc_id: str | None
    """The JSON-RPC id, as JSON; ``None`` for a notification and a proposal."""

    @property
    def params(self) -> dict[str, Any]:
        """The params; empty if there are none."""
        params: dict[str, Any] = {} if self.params_text is None else _json.value(self.params_text)
        return params

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a tool or prompt; empty if there are none."""
        arguments = self.params.get("arguments")
        return arguments if isinstance(arguments, dict) else {}

    def kind(self, head: str) -> str:
        """The extended kind of this call under that head: of its request, its response, its proposal."""
        return str(Kind.of(head, self.method, self.target))


@dataclass(frozen=True)
class Request:
    """A call for an addressee to carry out. The only act that may be executed."""

    call: Call


@dataclass(frozen=True)
class Proposed:
    """A call for review, not for execution."""

    call: Call


@dataclass(frozen=True)
class Answer:
    """The answer to a request: a result or an error."""

    rpc_id: str | None
    """The JSON-RPC id, as JSON; an error may lack one."""
    result: Any
    error: dict[str, Any] | None
    result_text: str | None = None
    """The result, as it was written."""


@dataclass(frozen=True)
class Other:
    """No MCP message: chat, or an application's own kind. Its payload was not examined."""


Act: TypeAlias = "Request | Proposed | Answer | Other"


def strict(kind: str, payload: str) -> Act:
    """Checks a payload against its kind.

    Raises:
        Mismatch: the envelope must not be acted on.
    """
    try:
        parsed = Kind.parse(kind)
        if parsed.head == REQUEST:
            return Request(_request(parsed, payload))
        if parsed.head == PROPOSAL:
            return Proposed(_proposal(parsed, payload))
        if parsed.head == RESPONSE:
            return _answer(payload)
    except (KindError, JsonError) as error:
        raise Mismatch(str(error)) from None
    return Other()


def answer_to(request_kind: str, envelope: Envelope) -> Answer:
    """The answer in an envelope to a request of this kind.

    Raises:
        Mismatch: it does not answer it.
    """
    try:
        fits = Kind.parse(envelope.kind).answers(Kind.parse(request_kind))
    except KindError as error:
        raise Mismatch(str(error)) from None
    if not fits:
        raise Mismatch(f"its kind `{envelope.kind}` does not answer `{request_kind}`")
    act = strict(envelope.kind, envelope.payload_text)
    if not isinstance(act, Answer):
        raise Mismatch("its payload is not an answer")
    return act


def id_in(payload: str) -> str | None:
    """The JSON-RPC id in a payload, where it can be read."""
    try:
        parts = _json.members(payload)
    except JsonError:
        return None
    if parts.duplicate == "id":
        return None
    return parts["id"].id if "id" in parts else None


def _request(kind: Kind, payload: str) -> Call:
    parts = _json.members(payload, unique=True)
    _refuse_doubles(parts, ("jsonrpc", "id", "method", "params"))
    _check_message(parts)
    if "method" not in parts:
        raise Mismatch("a request needs `method`")
    return _call(kind, parts)


def _proposal(kind: Kind, payload: str) -> Call:
    parts = _json.members(payload, unique=True)
    _refuse_doubles(parts, ("jsonrpc", "method", "params"))
    if "jsonrpc" in parts and parts["jsonrpc"].value != "2.0":
        raise Mismatch('`jsonrpc` must be "2.0"')
    if "result" in parts or "error" in parts:
        raise Mismatch("a proposal has neither `result` nor `error`")
    if "method" not in parts or parts["method"].text is None:
        raise Mismatch("`method` must be a string")
    proposed = Members({key: parts[key] for key in ("method", "params") if key in parts})
    _check_params(proposed)
    return _call(kind, proposed)


def _answer(payload: str) -> Answer:
    parts = _json.members_once(payload)
    _check_message(parts)
    if "method" in parts:
        raise Mismatch("a response needs `result` or `error`")
    rpc_id = parts["id"].id if "id" in parts else None
    if "error" in parts:
        return Answer(rpc_id, None, parts["error"].value)
    return Answer(rpc_id, parts["result"].value, None, parts["result"].raw)


def _check_message(parts: Members) -> None:
    """Whether an object is a JSON-RPC 2.0 message with a string or integer id."""
    if "jsonrpc" not in parts or parts["jsonrpc"].value != "2.0":
        raise Mismatch('`jsonrpc` must be "2.0"')
    has_id = "id" in parts and parts["id"].id is not None
    result, error = "result" in parts, "error" in parts
    if "method" in parts:
        if result or error:
            raise Mismatch("a message with `method` has neither `result` nor `error`")
        if "id" in parts and not has_id:
            raise Mismatch(_BAD_ID)
        if parts["method"].text is None:
            raise Mismatch("`method` must be a string")
        _check_params(parts)
    elif result and error:
        raise Mismatch("an answer has either `result` or `error`, not both")
    elif result and not has_id:
        raise Mismatch("a result needs the id of its request, a string or an integer")
    elif error and not has_id and "id" in parts and parts["id"].value is not None:
        raise Mismatch(_BAD_ID)
    elif error and not isinstance(parts["error"].value, dict):
        raise Mismatch("`error` must be an object")
    elif not result and not error:
        raise Mismatch("a message needs `method`, `result` or `error`")


def _check_params(parts: Members) -> None:
    if "params" in parts and not isinstance(parts["params"].value, (dict, list)):
        raise Mismatch("`params` must be an object")


def _call(kind: Kind, parts: Members) -> Call:
    method = parts["method"].text or ""
    if method != kind.method:
        raise Mismatch(f"the kind says `{kind.method}`, the payload's method is `{method}`")
    target, params = None, None
    if "params" in parts:
        if not isinstance(parts["params"].value, dict):
            raise Mismatch("`params` must be an object")
        params = _json.members(parts["params"].raw)
    target = _target(method, params)
    if params is not None:
        _refuse_doubles(params, ("name", "uri", "ref", "taskId", "arguments", "_meta"))
    if kind.context is not None and target is None:
        raise Mismatch(f"the kind says `{kind.context}`, but the payload names nothing")
    if kind.context is not None and target != kind.context:
        raise Mismatch(f"the kind says `{kind.context}`, the payload names `{target}`")
    rpc_id = parts["id"].id if "id" in parts else None
    return Call(method, target, parts["params"].raw if "params" in parts else None, rpc_id)


def _target(method: str, params: Members | None) -> str | None:
    parts = Members() if params is None else params
    meta: Any = parts["_meta"].value if "_meta" in parts else None
    if meta is not None and not isinstance(meta, dict):
        raise Mismatch("`_meta` must be an object")
    meta_parts = Members() if meta is None else _json.members(parts["_meta"].raw)
    target = None
    if not (method in _LEGACY_ONLY and _PROTOCOL_VERSION in meta_parts):
        target = _named(_TARGETS.get(method), parts)
    token = parts.get("progressToken") if method == "notifications/progress" else meta_parts.get("progressToken")
    if "progressToken" in meta_parts and (token is None or token.id is None):
        raise Mismatch("`progressToken` must be a string or an integer")
    return target


def _named(key: str | None, params: Members) -> str | None:
    if key is None:
        return None
    if key != _REF:
        text = params[key].text if key in params else None
        if text is None:
            raise Mismatch(f"`params.{key}` must be a string")
        return text
    if "ref" not in params:
        raise Mismatch("`params.ref` is missing")
    reference = params["ref"].value
    if not isinstance(reference, dict):
        raise Mismatch("`params.ref` must be an object")
    member = {"ref/prompt": "name", "ref/resource": "uri"}.get(_text(reference.get("type")))
    if member is None:
        raise Mismatch("`params.ref.type` must be `ref/prompt` or `ref/resource`")
    if not _json.is_text(reference.get(member)):
        raise Mismatch("`params.ref` must name a prompt or a resource")
    return str(reference[member])


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _refuse_doubles(keys: Iterable[str], exact: Iterable[str]) -> None:
    double = _json.double_of(keys, exact)
    if double is not None:
        raise Mismatch(double)


def check(frame: str) -> tuple[Envelope, Act]:
    """Reads an envelope and checks it as strictly as a participant must before it acts on it; for bridges and tests.

    Raises:
        EnvelopeError: it is no envelope.
        Mismatch: kind and payload disagree.
    """
    envelope = Envelope.read(frame)
    act = strict(envelope.kind, envelope.payload_text)
    if envelope.kind == CHAT:
        chat(envelope.payload_text)
    return envelope, act


def chat(payload: str) -> tuple[str, str]:
    """The text and the format of a chat message. Without a known format it is plain.

    Raises:
        Mismatch: it has a member twice, or no text.
    """
    members = _json.members(payload)
    if members.duplicate is not None:
        raise Mismatch(_json.twice(members.duplicate))
    text = members["text"].text if "text" in members else None
    if text is None:
        raise Mismatch("not valid JSON: `text` must be a string")
    markdown = "format" in members and members["format"].value == "markdown"
    return text, "markdown" if markdown else "plain"


def verdict(frame: str) -> tuple[str, str | None, str | None]:
    """The verdict about an envelope in the words of ``docs/mcpx-vectors.json``, the target of its call, and its fault."""
    try:
        _, act = check(frame)
    except EnvelopeError as error:
        return ("malformed" if error.code == "malformed_envelope" else error.code), None, str(error)
    except Mismatch as error:
        return "mismatch", None, str(error)
    if isinstance(act, Request):
        return ("notification" if act.call.rpc_id is None else "request"), act.call.target, None
    if isinstance(act, Proposed):
        return "proposal", act.call.target, None
    return ("answer" if isinstance(act, Answer) else "other"), None, None
