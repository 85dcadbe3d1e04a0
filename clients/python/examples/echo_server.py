"""An MCP server that dials out: it serves tools, a prompt and a resource to its topic until it is stopped.

Its participant needs the capability ``mcp/response:*``. Callers need ``mcp/request:tools/call:echo``. With ``serves = true`` in the
gateway's configuration, every MCP client of the topic sees them.
"""

from typing import Annotated

import anyio

import portmoot

server = portmoot.Server("echo-server", "1.0")


@server.tool
async def echo(text: str) -> str:
    """Returns a text"""
    return text


@server.tool
def add(a: float, b: Annotated[float, "The second number"]) -> dict[str, float]:
    """Adds two numbers"""
    return {"sum": a + b}


@server.tool
async def whoami(request: portmoot.IncomingRequest) -> str:
    """Returns the name of the caller"""
    return request.caller


@server.prompt
def summary(topic: str) -> str:
    """Asks for a summary"""
    return f"Summarize what was said about {topic}."


@server.resource("note://{day}", mime_type="text/plain")
def note(day: str) -> str:
    """The note of a day"""
    if day == "never":
        raise portmoot.ToolError("there is no such day")
    return f"Nothing happened on {day}."


async def main() -> None:
    async with portmoot.connect(serve=server, mode="directed") as me:
        print(f"serving as {me.id}", flush=True)
        async for event in me.events():
            if isinstance(event, portmoot.events.Violation):
                print(f"ignored an envelope of {event.sender}: {portmoot.visible(event.why)}", flush=True)


anyio.run(main)
