"""Signatures as JSON Schema, arguments that are checked by them, and what a server answers."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional, TypedDict, cast

import pytest

import portmoot
from portmoot import IncomingRequest, RpcError, SchemaError, Server, ToolError, ToolResult
from portmoot._check import Call
from portmoot._envelope import Envelope
from portmoot._protocol import Job, ReplyTo
from portmoot._schema import Signature, Unfit

pytestmark = pytest.mark.anyio


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Named(TypedDict, total=False):
    name: str


def tool(
    text: str,
    count: int,
    ratio: float = 0.5,
    tags: Annotated[list[str], "Some words"] = [],
    level: Literal["low", "high"] = "low",
    colour: Optional[Colour] = None,
    at: Point | None = None,
    more: dict[str, int] = {},
    pair: tuple[int, str] = (0, ""),
    named: Named = {},
    any: Any = {},
    request: IncomingRequest = cast(IncomingRequest, None),
) -> None: ...


SIGNATURE = Signature(tool, IncomingRequest)


def test_a_signature_is_a_schema() -> None:
    point = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
        "required": ["x"],
        "additionalProperties": False,
    }
    assert SIGNATURE.schema() == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number", "default": 0.5},
            "tags": {"type": "array", "items": {"type": "string"}, "description": "Some words"},
            "level": {"enum": ["low", "high"], "default": "low"},
            "colour": {"anyOf": [{"enum": ["red", "blue"]}, {"type": "null"}]},
            "at": {"anyOf": [point, {"type": "null"}]},
            "more": {"type": "object", "additionalProperties": {"type": "integer"}},
            "pair": {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
            "named": {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
            "any": {},
        },
        "required": ["text", "count"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("more", "expect"),
    [
        ({}, {}),
        ({"ratio": 1}, {"ratio": 1.0}),
        ({"count": 2.0}, {"count": 2}),
        ({"colour": "red"}, {"colour": Colour.RED}),
        ({"at": {"x": 1}}, {"at": Point(1)}),
        ({"pair": [1, "a"]}, {"pair": (1, "a")}),
        ({"text": 1}, "`text` must be a string"),
        ({"count": True}, "`count` must be an integer"),
        ({"count": 1.5}, "`count` must be an integer"),
        ({"count": "1"}, "`count` must be an integer"),
        ({"ratio": "x"}, "`ratio` must be a number"),
        ({"tags": ["a", 1]}, "`tags[1]` must be a string"),
        ({"tags": "a"}, "`tags` must be an array"),
        ({"level": "mid"}, "`level` must be one of 'low', 'high'"),
        ({"colour": "green"}, "`colour` must be one of 'red', 'blue'; or `colour` must be null"),
        ({"at": {}}, "`at.x` is missing; or `at` must be null"),
        ({"at": {"x": 1, "z": 1}}, "`at.z` is unknown; or `at` must be null"),
        ({"more": {"a": "b"}}, "`more.a` must be an integer"),
        ({"pair": [1]}, "`pair` must have 2 elements"),
        ({"request": 1}, "`request` is unknown"),
        ({"unknown": 1}, "`unknown` is unknown"),
    ],
)
def test_arguments_are_fitted_or_refused(more: dict[str, Any], expect: dict[str, Any] | str) -> None:
    arguments = {"text": "t", "count": 1, **more}
    if isinstance(expect, str):
        with pytest.raises(Unfit) as why:
            SIGNATURE.fit(arguments, None)
        assert str(why.value) == expect
    else:
        assert SIGNATURE.fit(arguments, "the request") == {**arguments, **expect, "request": "the request"}


def test_types_without_a_schema_are_refused_at_once() -> None:
    server = Server("s")
    for function in (lambda *args: None, cast(Callable[..., Any], Server.tool)):
        with pytest.raises(SchemaError):
            server.tool(name="x")(function)

    def odd(value: Server) -> None: ...

    with pytest.raises(SchemaError, match="has no JSON Schema"):
        server.tool(odd)
    with pytest.raises(TypeError, match="must have the same names"):
        server.resource("a://{x}")(lambda: "")


server = Server("s", "1", instructions="Be kind.")


@server.tool
async def echo(text: str, request: IncomingRequest) -> str:
    """Says it again"""
    return f"{text}, {request.caller}"


@server.tool(name="point", annotations={"readOnlyHint": True})
def make_point(x: int) -> Point:
    return Point(x, 2)


@server.tool
def many() -> list[int]:
    return [1, 2]


@server.tool
def nothing() -> None: ...


@server.tool
def image() -> ToolResult:
    return ToolResult([{"type": "image", "data": "", "mimeType": "image/png"}], meta={"a": 1})


@server.tool
async def fails(how: str) -> str:
    if how == "says why":
        raise ToolError("it is Sunday")
    if how == "rpc":
        raise RpcError(-32050, "no", {"a": 1})
    raise KeyError("an internal secret")


@server.prompt
def brief(topic: Annotated[str, "What about"], long: str = "no") -> str:
    """Asks for a summary"""
    return f"Summarize {topic}"


@server.resource("note://all")
def everything() -> bytes:
    return b"\x00\x01"


@server.resource("note://{day}/{name}.md", mime_type="text/markdown")
async def note(day: str, name: str) -> str:
    if day == "never":
        raise ToolError("there is no such day")
    return f"{day} {name}"


async def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    from portmoot import _json

    call = Call(method, None, _json.write(params), "1")
    envelope = Envelope("e", "ann", ("s",), f"mcp/request:{method}", None, None, "{}", "{}")
    job = Job(envelope, call, None, ReplyTo(("ann",), "k", "e", "1"))
    return await server.answer(IncomingRequest(job, cast(portmoot.Participant, None)))


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


@pytest.mark.parametrize(
    ("name", "arguments", "expect"),
    [
        ("echo", {"text": "hi"}, text("hi, ann")),
        ("echo", {}, text("`text` is missing", isError=True)),
        ("point", {"x": 1}, text('{"x":1,"y":2}', structuredContent={"x": 1, "y": 2})),
        ("many", {}, text("[1,2]")),
        ("nothing", {}, {"content": []}),
        ("image", {}, {"content": [{"type": "image", "data": "", "mimeType": "image/png"}], "_meta": {"a": 1}}),
        ("fails", {"how": "says why"}, text("it is Sunday", isError=True)),
    ],
)
async def test_tools_are_called(name: str, arguments: dict[str, Any], expect: dict[str, Any]) -> None:
    assert await answer("tools/call", {"name": name, "arguments": arguments}) == expect


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "none"}, -32602),
        ("tools/call", {"name": "echo", "arguments": []}, -32602),
        ("tools/call", {"name": "fails", "arguments": {"how": "rpc"}}, -32050),
        ("prompts/get", {"name": "none"}, -32602),
        ("prompts/get", {"name": "brief"}, -32602),
        ("resources/read", {"uri": "note://never/x.md"}, -32002),
        ("resources/read", {"uri": "note://mon/a/b.md"}, -32002),
        ("resources/read", {"uri": "note://mon/x_md"}, -32002),
        ("logging/setLevel", {"level": "info"}, -32601),
    ],
)
async def test_errors_have_their_codes(method: str, params: dict[str, Any], code: int) -> None:
    with pytest.raises(RpcError) as why:
        await answer(method, params)
    assert why.value.code == code


async def test_lists_and_reads() -> None:
    greeted = await answer("initialize", {"protocolVersion": "2025-06-18"})
    assert greeted == {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "s", "version": "1"},
        "instructions": "Be kind.",
    }
    assert (await answer("initialize", {"protocolVersion": "2026-07-28"}))["protocolVersion"] == "2025-11-25"
    tools = {one["name"]: one for one in (await answer("tools/list", {}))["tools"]}
    assert list(tools) == ["echo", "point", "many", "nothing", "image", "fails"]
    assert tools["echo"]["description"] == "Says it again"
    assert list(tools["echo"]["inputSchema"]["properties"]) == ["text"]
    assert tools["point"]["outputSchema"]["properties"] == {"x": {"type": "integer"}, "y": {"type": "integer"}}
    assert tools["point"]["annotations"] == {"readOnlyHint": True}
    prompt = (await answer("prompts/list", {}))["prompts"][0]
    assert prompt["arguments"] == [
        {"name": "topic", "required": True, "description": "What about"},
        {"name": "long", "required": False},
    ]
    got = await answer("prompts/get", {"name": "brief", "arguments": {"topic": "tea"}})
    assert got["messages"] == [{"role": "user", "content": {"type": "text", "text": "Summarize tea"}}]
    assert (await answer("resources/list", {}))["resources"] == [{"uri": "note://all", "name": "everything"}]
    templates = (await answer("resources/templates/list", {}))["resourceTemplates"]
    assert templates == [{"uriTemplate": "note://{day}/{name}.md", "name": "note", "mimeType": "text/markdown"}]
    blob = (await answer("resources/read", {"uri": "note://all"}))["contents"]
    assert blob == [{"uri": "note://all", "mimeType": "application/octet-stream", "blob": "AAE="}]
    read = (await answer("resources/read", {"uri": "note://mon/x.md"}))["contents"]
    assert read == [{"uri": "note://mon/x.md", "mimeType": "text/markdown", "text": "mon x"}]
