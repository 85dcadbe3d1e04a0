"""An MCP server made of functions: tools, prompts and resources that a participant serves to its topic.

With ``serves = true`` in the gateway's configuration, every MCP client of the topic sees them.
"""

from __future__ import annotations

import base64
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, overload

import anyio.to_thread

from . import _json
from ._check import Call
from ._protocol import Fulfils, Job
from ._schema import Schema, Signature, Unfit, output_schema, to_json
from .errors import RpcError, ToolError

if TYPE_CHECKING:
    from .participant import Participant

_Function = TypeVar("_Function", bound=Callable[..., Any])

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The revisions of MCP whose handshake is answered as asked; any other is answered with the first."""
_UNKNOWN_RESOURCE = -32002


@dataclass(frozen=True)
class IncomingRequest:
    """A request that names this participant and whose kind and payload agree. A function that has a parameter of this type
    receives it."""

    job: Job = field(repr=False)
    participant: Participant = field(repr=False)

    @property
    def caller(self) -> str:
        """The sender; the gateway vouches for it. Of a participant with ``serves = true`` it is the MCP client that calls."""
        return self.job.envelope.sender

    @property
    def envelope_id(self) -> str:
        """The id of the envelope: once per request."""
        return self.job.envelope.id

    @property
    def call(self) -> Call:
        """Method and params."""
        return self.job.call

    @property
    def fulfils(self) -> Fulfils | None:
        """The proposal that the request fulfils, if it names one."""
        return self.job.fulfils

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress to the caller, if it asked for it; this extends the time that it waits. Needs the capability
        ``mcp/request:notifications/*``."""
        token = (self.call.params.get("_meta") or {}).get("progressToken")
        if token is None:
            return
        params = {"progressToken": token, "progress": progress, "total": total, "message": message}
        await self.participant.notify(
            "notifications/progress",
            {key: value for key, value in params.items() if value is not None},
            to=[self.caller],
            correlation_id=self.envelope_id,
        )


@dataclass(frozen=True)
class ToolResult:
    """The result of a tool."""

    content: list[dict[str, Any]]
    """Content blocks, as MCP has them."""
    structured: dict[str, Any] | None = None
    """``structuredContent``."""
    is_error: bool = False
    """Whether the tool failed; the content says why."""
    meta: dict[str, Any] | None = None
    """``_meta``."""

    @property
    def text(self) -> str:
        """The text blocks, joined by line ends."""
        return "\n".join(str(one.get("text", "")) for one in self.content if one.get("type") == "text")

    @classmethod
    def of(cls, text: str, *, is_error: bool = False) -> ToolResult:
        """A result that is one text."""
        return cls([{"type": "text", "text": text}], is_error=is_error)

    @classmethod
    def read(cls, result: Mapping[str, Any]) -> ToolResult:
        """The result of ``tools/call``."""
        content = result.get("content")
        structured, meta = result.get("structuredContent"), result.get("_meta")
        return cls(
            content=[one for one in content if isinstance(one, dict)] if isinstance(content, list) else [],
            structured=structured if isinstance(structured, dict) else None,
            is_error=result.get("isError") is True,
            meta=meta if isinstance(meta, dict) else None,
        )

    def _written(self) -> dict[str, Any]:
        written: dict[str, Any] = {"content": self.content}
        if self.structured is not None:
            written["structuredContent"] = self.structured
        if self.is_error:
            written["isError"] = True
        if self.meta is not None:
            written["_meta"] = self.meta
        return written


class _Entry:
    """A function with its description and signature."""

    def __init__(self, function: Callable[..., Any], name: str | None, description: str | None) -> None:
        self.function = function
        self.name = name or function.__name__
        self.description = description if description is not None else inspect.getdoc(function) or ""
        self.signature = Signature(function, IncomingRequest)

    async def run(self, arguments: Mapping[str, Any], request: IncomingRequest) -> Any:
        fitted = self.signature.fit(arguments, request)
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**fitted)
        # A plain function may block: it runs beside the connection.
        return await anyio.to_thread.run_sync(functools.partial(self.function, **fitted))


@dataclass(frozen=True)
class _Tool:
    entry: _Entry
    definition: dict[str, Any]


class _Resource:
    def __init__(self, uri: str, entry: _Entry, mime_type: str | None) -> None:
        self.uri = uri
        self.entry = entry
        self.mime_type = mime_type
        names = re.findall(r"\{(\w+)\}", uri)
        self.is_template = bool(names)
        if sorted(names) != sorted(entry.signature.names):
            raise TypeError(f"the parameters of the function and those of {uri!r} must have the same names")
        pattern = re.sub(r"\\\{(\w+)\\\}", lambda name: f"(?P<{name[1]}>[^/]+)", re.escape(uri))
        self.pattern = re.compile(pattern)

    def definition(self) -> dict[str, Any]:
        definition = {"uriTemplate" if self.is_template else "uri": self.uri, "name": self.entry.name}
        if self.entry.description:
            definition["description"] = self.entry.description
        if self.mime_type:
            definition["mimeType"] = self.mime_type
        return definition


class Server:
    """What a participant serves. Give it to :func:`portmoot.connect` as ``serve``.

    Arguments are checked by the types of the parameters, and the types are what callers see as JSON Schema. A plain function runs in a
    thread, an async one beside the connection; at most ``CALLS_MAX`` run at one time. Exceptions other than :class:`ToolError` and
    :class:`RpcError` are logged, and the caller learns only that the tool failed.
    """

    def __init__(self, name: str, version: str = "0", *, instructions: str | None = None) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self._tools: dict[str, _Tool] = {}
        self._prompts: dict[str, _Entry] = {}
        self._resources: dict[str, _Resource] = {}

    @overload
    def tool(self, function: _Function) -> _Function: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Schema | None = None,
        annotations: Mapping[str, Any] | None = None,
    ) -> Callable[[_Function], _Function]: ...
    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        schema: Schema | None = None,
        annotations: Mapping[str, Any] | None = None,
    ) -> Any:
        """Decorator: serves a function as a tool; it replaces one of the same name.

        A string that it returns becomes text, an object, a dataclass or a TypedDict text and structured content, ``None`` nothing, any
        other value JSON as text; a :class:`ToolResult` is taken as it is.
        """

        def add(function: _Function) -> _Function:
            entry = _Entry(function, name, description)
            definition: dict[str, Any] = {"name": entry.name, "description": entry.description}
            definition["inputSchema"] = schema if schema is not None else entry.signature.schema()
            output = output_schema(entry.signature.returns)
            if output is not None and entry.signature.returns is not ToolResult:
                definition["outputSchema"] = output
            if annotations:
                definition["annotations"] = dict(annotations)
            self._tools[entry.name] = _Tool(entry, definition)
            return function

        return add if function is None else add(function)

    @overload
    def prompt(self, function: _Function) -> _Function: ...
    @overload
    def prompt(
        self, *, name: str | None = None, description: str | None = None
    ) -> Callable[[_Function], _Function]: ...
    def prompt(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> Any:
        """Decorator: serves a function as a prompt. It returns the text of a user's message, or a list of messages."""

        def add(function: _Function) -> _Function:
            entry = _Entry(function, name, description)
            self._prompts[entry.name] = entry
            return function

        return add if function is None else add(function)

    def resource(
        self, uri: str, *, name: str | None = None, description: str | None = None, mime_type: str | None = None
    ) -> Callable[[_Function], _Function]:
        """Decorator: serves what a function returns as a resource: a string, or bytes. With ``{name}`` in the URI it is a template,
        and the function gets the parts, which hold no slash."""

        def add(function: _Function) -> _Function:
            self._resources[uri] = _Resource(uri, _Entry(function, name, description), mime_type)
            return function

        return add

    async def answer(self, request: IncomingRequest) -> dict[str, Any]:
        """Answers one request.

        Raises:
            RpcError: the answer is this error.
        """
        method, params = request.call.method, request.call.params
        if method == "tools/call":
            return await self._call(params, request)
        if method == "prompts/get":
            return await self._prompt(params, request)
        if method == "resources/read":
            return await self._read(params, request)
        if method == "initialize":
            return self._initialize(params)
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": [tool.definition for tool in self._tools.values()]}
        if method == "prompts/list":
            return {"prompts": [_prompt_definition(one) for one in self._prompts.values()]}
        if method == "resources/list":
            return {"resources": [one.definition() for one in self._resources.values() if not one.is_template]}
        if method == "resources/templates/list":
            return {"resourceTemplates": [one.definition() for one in self._resources.values() if one.is_template]}
        raise RpcError.method_not_found(method)

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        parts = {"tools": self._tools, "prompts": self._prompts, "resources": self._resources}
        answer: dict[str, Any] = {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {name: {} for name, entries in parts.items() if entries or name == "tools"},
            "serverInfo": {"name": self.name, "version": self.version},
        }
        if self.instructions:
            answer["instructions"] = self.instructions
        return answer

    async def _call(self, params: Mapping[str, Any], request: IncomingRequest) -> dict[str, Any]:
        tool = self._tools.get(str(params.get("name")))
        if tool is None:
            raise RpcError.invalid_params(f"unknown tool `{params.get('name')}`")
        arguments = params.get("arguments", {})
        if not isinstance(arguments, dict):
            raise RpcError.invalid_params("`arguments` must be an object")
        try:
            return _tool_result(await tool.entry.run(arguments, request))._written()
        except (Unfit, ToolError) as error:
            return ToolResult.of(str(error), is_error=True)._written()

    async def _prompt(self, params: Mapping[str, Any], request: IncomingRequest) -> dict[str, Any]:
        entry = self._prompts.get(str(params.get("name")))
        if entry is None:
            raise RpcError.invalid_params(f"unknown prompt `{params.get('name')}`")
        arguments = params.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise RpcError.invalid_params("`arguments` must be an object")
        try:
            said = await entry.run(arguments, request)
        except (Unfit, ToolError) as error:
            raise RpcError.invalid_params(str(error)) from None
        messages = said
        if isinstance(said, str):
            messages = [{"role": "user", "content": {"type": "text", "text": said}}]
        return {"description": entry.description, "messages": to_json(messages)}

    async def _read(self, params: Mapping[str, Any], request: IncomingRequest) -> dict[str, Any]:
        uri = str(params.get("uri"))
        for resource in self._resources.values():
            parts = resource.pattern.fullmatch(uri)
            if parts is None:
                continue
            try:
                found = await resource.entry.run(parts.groupdict(), request)
            except (Unfit, ToolError) as error:
                raise RpcError(_UNKNOWN_RESOURCE, str(error), {"uri": uri}) from None
            return {"contents": [_contents(uri, resource.mime_type, found)]}
        raise RpcError(_UNKNOWN_RESOURCE, "there is no resource of this URI", {"uri": uri})


def _prompt_definition(entry: _Entry) -> dict[str, Any]:
    def argument(name: str) -> dict[str, Any]:
        described = entry.signature.properties[name].get("description")
        found: dict[str, Any] = {"name": name, "required": name in entry.signature.required}
        return {**found, "description": described} if described else found

    arguments = [argument(name) for name in entry.signature.names]
    return {"name": entry.name, "description": entry.description, "arguments": arguments}


def _tool_result(returned: Any) -> ToolResult:
    if isinstance(returned, ToolResult):
        return returned
    if returned is None:
        return ToolResult([])
    if isinstance(returned, str):
        return ToolResult.of(returned)
    plain = to_json(returned)
    written = [{"type": "text", "text": _json.write(plain)}]
    return ToolResult(written, plain if isinstance(plain, dict) else None)


def _contents(uri: str, mime_type: str | None, found: Any) -> dict[str, Any]:
    contents: dict[str, Any] = {"uri": uri}
    if isinstance(found, bytes):
        contents["mimeType"] = mime_type or "application/octet-stream"
        contents["blob"] = base64.b64encode(found).decode()
        return contents
    contents["mimeType"] = mime_type or ("text/plain" if isinstance(found, str) else "application/json")
    contents["text"] = found if isinstance(found, str) else _json.write(to_json(found))
    return contents

