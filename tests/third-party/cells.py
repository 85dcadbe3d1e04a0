#!/usr/bin/env python3
"""The Python SDK as a client of the matrix: uses every feature of the fixture through each of several gateways, which put `fixture_`
before its names, at the same time. Prints one JSON line per feature: {"target": INDEX, "cell": NAME, "saw": VALUE}, or "error" and a
traceback in place of "saw"; without "cell" it is the connection that failed.

    cells.py [options] TARGET ...

    TARGET               JSON: the URL of a gateway (Streamable HTTP), or the words of a command (a child process)
    --era legacy|modern  how to open: `initialize`, or `server/discover`
    --job TOOL           the tool that is called as a task
    --skip CELL          leave this cell out; may be repeated

The same cells on the Rust SDK: crates/test/fixture/harness/cells.rs. What must be seen: crates/program/portmoot/tests/it/matrix.rs.
"""

import argparse
import asyncio
import json
import sys
import traceback
import warnings

import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from following import Tasks, task
from real import until

P = "fixture_"
PERSON = {"username": "Ada", "email": "ada@example.com"}
WATCHED = "test://watched-resource"


class Cells:
    """One connection, what came over it, and one method per cell, in the order in which they run."""

    def __init__(self, options, index):
        self.options, self.index = options, index
        self.modern = options.era == "modern"
        self.asked, self.logged, self.progressed, self.notified = [], [], [], []
        self.followed = {"asked": 0}

    # What the server may ask or say.

    async def on_sampling(self, _context, params):
        question = params.messages[0].content.text
        self.asked.append(question)
        answer = types.TextContent(type="text", text=f"answer to: {question}")
        return types.CreateMessageResult(role="assistant", content=answer, model="none", stopReason="endTurn")

    async def on_elicitation(self, _context, params):
        if params.mode == "url":
            self.asked.append(params.url)
            self.elicitation = getattr(params, "elicitation_id", None)
            return types.ElicitResult(action="accept")
        self.asked.append(params.message)
        if params.message in ("decline", "cancel"):
            return types.ElicitResult(action=params.message)
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={name: PERSON.get(name, name) for name in fields})

    async def on_roots(self, _context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])

    async def on_log(self, params):
        self.logged.append([params.level, params.data])

    async def on_progress(self, done, total, message):
        self.progressed.append([done, total, message])

    async def on_message(self, message):
        if isinstance(message, types.ServerNotification):
            self.notified.append(message.model_dump(by_alias=True, mode="json", exclude_none=True))

    async def run(self):
        match json.loads(self.options.targets[self.index]):
            case [command, *arguments]:
                target = StdioServerParameters(command=command, args=arguments)
            case url:
                target = streamable_http_client(url, http_client=httpx2.AsyncClient(timeout=60))
        self.client = Client(
            target,
            mode="auto" if self.modern else "legacy",
            read_timeout_seconds=30,
            sampling_callback=self.on_sampling,
            elicitation_callback=self.on_elicitation,
            list_roots_callback=self.on_roots,
            logging_callback=self.on_log,
            log_level="debug" if self.modern else None,
            message_handler=self.on_message,
            extensions=[Tasks(self.followed)] if self.modern else None,
            cache=None,
        )
        async with self.client:
            for name, cell in vars(Cells).items():
                if name.startswith("cell_") and name[5:] not in self.options.skip:
                    report(self.index, cell=name[5:], **await outcome(asyncio.wait_for(cell(self), 40)))

    async def call(self, name, arguments=None):
        result = await self.client.call_tool(P + name, arguments or {}, progress_callback=self.on_progress)
        return result.content[0].text, result

    async def text(self, name, arguments=None):
        return (await self.call(name, arguments))[0]

    # The cells.

    async def cell_era(self):
        return self.client.protocol_version

    async def cell_list(self):
        tools = (await self.client.list_tools()).tools
        echo = next(tool for tool in tools if tool.name == P + "echo")
        resources = (await self.client.list_resources()).resources
        templates = (await self.client.list_resource_templates()).resource_templates
        return [
            [echo.description, echo.input_schema],
            [str(one.uri) for one in resources],
            [one.uri_template for one in templates],
        ]

    async def cell_paged_list(self):
        names, pages, cursor = [], 0, None
        while cursor or not pages:
            page = await self.client.list_prompts(cursor=cursor)
            names += [prompt.name for prompt in page.prompts]
            pages, cursor = pages + 1, page.next_cursor
        return [pages, len(names), len(set(names)), names[-1]]

    async def cell_call(self):
        _, sum = await self.call("add", {"a": 2, "b": 3})
        return [await self.text("echo", {"text": "grüße"}), sum.structured_content]

    async def cell_read(self):
        text = (await self.client.read_resource("test://static-text")).contents[0]
        blob = (await self.client.read_resource("test://static-binary")).contents[0]
        return [text.text, blob.mime_type, len(blob.blob)]

    async def cell_template_read(self):
        return (await self.client.read_resource("test://template/42/data")).contents[0].text

    async def cell_get(self):
        prompt = await self.client.get_prompt(P + "test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        return prompt.messages[0].content.text

    async def cell_complete(self):
        prompt = types.PromptReference(type="ref/prompt", name=P + "test_prompt_with_arguments")
        template = types.ResourceTemplateReference(type="ref/resource", uri="test://template/{id}/data")
        completed = [
            await self.client.complete(prompt, {"name": "arg1", "value": "par"}),
            await self.client.complete(template, {"name": "id", "value": "12"}),
        ]
        return [one.completion.values for one in completed]

    async def elicited(self, message):
        return [await self.text("test_elicitation", {"message": message}), take(self.asked)]

    async def cell_elicitation_accepted(self):
        return await self.elicited("accept")

    async def cell_elicitation_declined(self):
        return await self.elicited("decline")

    async def cell_elicitation_cancelled(self):
        return await self.elicited("cancel")

    async def cell_elicitation_url(self):
        return [await self.text("ask_url"), take(self.asked)]

    async def cell_elicitation_url_completed(self):
        completed = {"method": "notifications/elicitation/complete", "params": {"elicitationId": self.elicitation}}
        return await until(lambda: completed in self.notified, 10)

    async def cell_elicitation_in_prompt(self):
        prompt = await self.client.get_prompt(P + "test_input_required_result_prompt")
        return [prompt.messages[0].content.text, take(self.asked)]

    async def cell_sampling(self):
        return [await self.text("test_sampling", {"prompt": "what?"}), take(self.asked)]

    async def cell_roots(self):
        return json.loads(await self.text("ask_roots"))["roots"]

    async def cell_progress(self):
        self.progressed.clear()
        return [await self.text("test_tool_with_progress"), take(self.progressed)]

    async def cell_log(self):
        if not self.modern:
            await self.client.set_logging_level("debug")
        text = await self.text("test_tool_with_logging")
        await until(lambda: len(self.logged) >= 3, 10)
        return [text, take(self.logged)]

    async def cell_cancel(self):
        self.progressed.clear()
        slow = asyncio.ensure_future(self.text("slow", {"ms": 8000}))
        runs = await until(lambda: self.progressed, 20)
        slow.cancel()
        await asyncio.wait([slow])
        for _ in range(100):
            _, record = await self.call("record")
            if record.structured_content["cancelled"]:
                break
            await asyncio.sleep(0.05)
        return [bool(runs), record.structured_content["cancelled"]]

    async def cell_list_changed(self):
        if self.modern:
            async with self.client.listen(tools_list_changed=True) as stream:
                said = await self.text("toggle_tool")
                event = await asyncio.wait_for(anext(aiter(stream)), 10)
            notified = type(event).__name__ == "ToolsListChanged"
        else:
            # A session's own stream may open a little later than the session.
            changed = lambda: any(one["method"] == "notifications/tools/list_changed" for one in self.notified)
            for _ in range(20):
                said = await self.text("toggle_tool")
                if notified := await until(changed, 0.5):
                    break
        listed = lambda tools: any(tool.name == P + "sometimes" for tool in tools)
        for _ in range(100):
            agrees = listed((await self.client.list_tools()).tools) == (said == "`sometimes` is listed")
            if agrees:
                break
            await asyncio.sleep(0.05)
        return [notified, agrees]

    async def cell_resource_updated(self):
        if self.modern:
            async with self.client.listen(resource_subscriptions=[WATCHED]) as stream:
                await self.text("touch_watched_resource")
                event = await asyncio.wait_for(anext(aiter(stream)), 10)
                return str(event.uri)
        await self.client.subscribe_resource(WATCHED)
        updated = lambda: [one["params"]["uri"] for one in self.notified if one["method"].endswith("/updated")]
        for _ in range(20):
            await self.text("touch_watched_resource")
            if await until(updated, 0.5):
                break
        await self.client.unsubscribe_resource(WATCHED)
        return updated()[0]

    async def cell_task(self):
        name, arguments = self.options.job, {"seconds": 0.1}
        if self.modern:
            result = await self.client.call_tool(name, arguments)
        else:
            result = await task(self.client.session, self.followed, name, arguments)
        return [result.content[0].text, "first" in self.followed]

    async def cell_error(self):
        failed, result = await self.call("test_error_handling")
        return [
            await refused(self.text("fail", {"code": -31999})),
            (await refused(self.client.read_resource("test://unknown")))["code"],
            [failed, result.is_error],
        ]


async def refused(request):
    try:
        return f"no error: {await request}"
    except MCPError as refused:
        return refused.error.model_dump(by_alias=True, exclude_none=True)


def take(seen):
    taken = list(seen)
    seen.clear()
    return taken


async def outcome(cell):
    try:
        return {"saw": await cell}
    except Exception as error:  # one cell or connection; the others run all the same
        return {"error": "".join(traceback.format_exception(error))}


def report(index, **outcome):
    print(json.dumps({"target": index, **outcome}, default=str), flush=True)


async def connection(options, index):
    failed = await outcome(asyncio.wait_for(Cells(options, index).run(), 120))
    if "error" in failed:
        report(index, **failed)


async def all_connections(options):
    await asyncio.gather(*(connection(options, index) for index in range(len(options.targets))))


def main():
    warnings.simplefilter("ignore")  # what is deprecated in one era is still to be carried
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--era", choices=("legacy", "modern"), required=True)
    parser.add_argument("--job", required=True)
    parser.add_argument("--skip", action="append", default=[])
    asyncio.run(all_connections(parser.parse_args()))


main()
