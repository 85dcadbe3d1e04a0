#!/usr/bin/env python3
"""The Python SDK as a client: walks through a server and prints one JSON report.

    client.py URL [options]                      Streamable HTTP, or with --sse the endpoint pair of 2024-11-05
    client.py --stdio [options] -- COMMAND ...   a child process

    --era legacy|modern   how to open: `initialize`, or `server/discover` (default legacy)
    --token TOKEN         sent as a bearer token (HTTP only)
    --prefix PREFIX       stands before every name of the fixture, as a gateway puts it
    --roots URI           the root that the client says it has (default file:///work)
    --tour NAME           `fixture` walks through all of the fixture (default), `plain` through what works in any pair of
                          eras, `real` through the servers of real.py
    --call NAME JSON      call this tool (may be repeated) instead

The report has, for a tour: lists, what calls answered, progress, log lines, changes that were announced, and what the
server asked (and the client answered). An exception is reported as `error`, and the exit status is then 1.
"""

import argparse
import asyncio
import json
import sys
import traceback
import warnings

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

import real
from real import until

WATCHED = "test://watched-resource"


class Tour:
    """One connection, and everything that came over it."""

    def __init__(self, options):
        self.options = options
        self.modern = options.era == "modern"
        self.report = {"asked": [], "log": [], "changed": [], "progress": [], "calls": {}}

    # What the server may ask or say.

    async def sample(self, _context, params):
        question = params.messages[0].content.text
        self.report["asked"].append(["sampling", question])
        answer = types.TextContent(type="text", text=f"answer to: {question}")
        return types.CreateMessageResult(role="assistant", content=answer, model="none", stopReason="endTurn")

    async def elicit(self, _context, params):
        self.report["asked"].append(["elicitation", params.message])
        if params.mode == "url":
            return types.ElicitResult(action="accept")
        kinds = {"boolean": True, "integer": 7, "number": 1.5, "array": []}
        schema = params.requested_schema
        needed = lambda name, field: name in schema.get("required", []) or "format" not in field
        fields = [(name, field) for name, field in schema["properties"].items() if needed(name, field)]
        content = {name: field.get("default", kinds.get(field["type"], name)) for name, field in fields}
        return types.ElicitResult(action="accept", content=content)

    async def roots(self, _context):
        self.report["asked"].append(["roots", ""])
        return types.ListRootsResult(roots=[types.Root(uri=self.options.roots, name="work")])

    async def log(self, params):
        self.report["log"].append([params.level, params.data])

    async def notice(self, message):
        if isinstance(message, types.ServerNotification):
            method = getattr(message, "method", type(message).__name__)
            self.report["changed"].append(method)

    async def progress(self, done, total, message):
        self.report["progress"].append([done, total, message])

    # What the client does.

    def target(self):
        if self.options.stdio:
            command, *arguments = self.options.command
            return StdioServerParameters(command=command, args=arguments)
        headers = {"Authorization": f"Bearer {self.options.token}"} if self.options.token else {}
        if self.options.sse:
            return sse_client(self.options.url, headers=headers)
        http = httpx2.AsyncClient(headers=headers, timeout=60)
        return streamable_http_client(self.options.url, http_client=http)

    async def run(self):
        client = Client(
            self.target(),
            mode="auto" if self.modern else "legacy",
            read_timeout_seconds=30,
            sampling_callback=self.sample,
            elicitation_callback=self.elicit,
            list_roots_callback=self.roots,
            logging_callback=self.log,
            log_level="debug" if self.modern else None,
            message_handler=self.notice,
            cache=None,
        )
        async with client:
            self.report["protocol"] = client.protocol_version
            self.report["server"] = client.server_info.name if client.server_info else None
            await self.lists(client)
            if self.options.call:
                for name, arguments in self.options.call:
                    await self.call(client, name, json.loads(arguments))
            elif self.options.tour == "real":
                await real.walk(self, client)
            elif self.options.tour == "plain":
                await self.plain(client)
            else:
                await self.fixture(client)

    async def lists(self, client):
        """Every page of every list that the server says it has."""
        able = client.server_capabilities
        self.report["tools"] = await pages(client.list_tools, "tools", "name") if able.tools else []
        self.report["prompts"] = await pages(client.list_prompts, "prompts", "name") if able.prompts else []
        self.report["resources"] = await pages(client.list_resources, "resources", "uri") if able.resources else []
        self.report["templates"] = (
            await pages(client.list_resource_templates, "resource_templates", "uri_template") if able.resources else []
        )

    async def call(self, client, name, arguments=None):
        result = await client.call_tool(name, arguments or {}, progress_callback=self.progress)
        texts = [block.text for block in result.content if block.type == "text"]
        self.report["calls"][name] = {
            "text": "\n".join(texts),
            "types": [block.type for block in result.content],
            "error": bool(result.is_error),
            "structured": result.structured_content,
        }

    async def plain(self, client):
        """What works whatever eras client and server speak: call, read, get, complete."""
        p = self.options.prefix
        await self.call(client, p + "echo", {"text": "hello"})
        await self.call(client, p + "test_multiple_content_types")
        await self.call(client, p + "test_error_handling")
        await self.call(client, p + "add", {"a": 2, "b": 3})
        read = await client.read_resource("test://template/42/data")
        self.report["read"] = read.contents[0].text
        prompt = await client.get_prompt(p + "test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        self.report["prompt"] = prompt.messages[0].content.text
        reference = types.PromptReference(type="ref/prompt", name=p + "test_prompt_with_arguments")
        completed = await client.complete(reference, {"name": "arg1", "value": "par"})
        self.report["completed"] = completed.completion.values

    async def fixture(self, client):
        p = self.options.prefix
        if not self.modern:
            await client.send_ping()
            await client.set_logging_level("debug")
        await self.plain(client)
        await self.call(client, p + "test_custom_header", {"value": "in a header, too: é"})
        await self.call(client, p + "test_tool_with_progress")
        await self.call(client, p + "test_tool_with_logging")
        if self.modern:
            await self.rounds(client, p)
            await self.listen(client, p)
        else:
            await self.questions(client, p)
            await self.changes(client, p)

    async def questions(self, client, p):
        """The server asks while a call is open."""
        await self.call(client, p + "test_sampling", {"prompt": "what?"})
        await self.call(client, p + "test_elicitation", {"message": "who?"})
        await self.call(client, p + "test_elicitation_sep1034_defaults")
        await self.call(client, p + "ask_url")
        await self.call(client, p + "ask_roots")
        await self.call(client, p + "ask_ping")

    async def rounds(self, client, p):
        """The server answers `input_required`, and the call is made again."""
        for name in ("elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round"):
            await self.call(client, f"{p}test_input_required_result_{name}")
        await self.call(client, p + "input_required_state_only")
        await self.call(client, p + "input_required_url")
        prompt = await client.get_prompt(p + "test_input_required_result_prompt")
        self.report["asking_prompt"] = prompt.messages[0].content.text

    async def changes(self, client, p):
        """Changes come on the session's own stream, which may open a little later than the session."""
        await client.subscribe_resource(WATCHED)
        announcers = {
            "notifications/tools/list_changed": "toggle_tool",
            "notifications/prompts/list_changed": "test_trigger_prompt_change",
            "notifications/resources/list_changed": "trigger_resource_change",
            "notifications/resources/updated": "touch_watched_resource",
        }
        for method, tool in announcers.items():
            for _attempt in range(20):
                await client.call_tool(p + tool, {})
                if await until(lambda: method in self.report["changed"], 0.5):
                    break
        await client.unsubscribe_resource(WATCHED)

    async def listen(self, client, p):
        """Changes come on a listen stream."""
        async with client.listen(
            tools_list_changed=True,
            prompts_list_changed=True,
            resources_list_changed=True,
            resource_subscriptions=[WATCHED],
        ) as stream:
            self.report["honoured"] = stream.honored.model_dump(by_alias=True, exclude_none=True)
            notified = self.report["notified"] = []

            async def hear():
                async for event in stream:
                    notified.append(type(event).__name__)
                    if len(set(notified)) == 4:
                        return

            hearing = asyncio.ensure_future(hear())
            tools = ("toggle_tool", "test_trigger_prompt_change", "trigger_resource_change", "touch_watched_resource")
            for tool in tools:
                await client.call_tool(p + tool, {})
            await asyncio.wait_for(hearing, 10)


async def pages(list_page, items, key):
    names, cursor = [], None
    while True:
        page = await list_page(cursor=cursor)
        names += [str(getattr(item, key)) for item in getattr(page, items)]
        cursor = page.next_cursor
        if cursor is None:
            return names


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?")
    parser.add_argument("--stdio", action="store_true")
    parser.add_argument("--sse", action="store_true")
    parser.add_argument("--tour", choices=("fixture", "plain", "real"), default="fixture")
    parser.add_argument("--roots", default="file:///work")
    parser.add_argument("--era", choices=("legacy", "modern"), default="legacy")
    parser.add_argument("--token")
    parser.add_argument("--prefix", default="")
    parser.add_argument("--call", nargs=2, action="append", metavar=("NAME", "JSON"))
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:split])
    options.command = words[split + 1 :]
    if options.stdio != bool(options.command) or options.stdio == bool(options.url):
        parser.error("give a URL, or --stdio and a command after --")
    return options


def main():
    warnings.simplefilter("ignore")  # what is deprecated in one era is still to be carried
    tour = Tour(arguments())
    try:
        asyncio.run(asyncio.wait_for(tour.run(), 120))
    except BaseException as error:  # everything is reported, even what asyncio raises
        tour.report["error"] = "".join(traceback.format_exception(error))
    print(json.dumps(tour.report, indent=1, default=str))
    sys.exit(1 if "error" in tour.report else 0)


main()
