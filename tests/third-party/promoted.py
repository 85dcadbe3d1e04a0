#!/usr/bin/env python3
"""The Python SDK as a client that may only propose: one call, followed to its end, and one JSON report.

    promoted.py URL --token TOKEN --way WAY TOOL JSON

    --way tasks        2026-07-28 with the extension io.modelcontextprotocol/tasks
    --way task         2025-11-25 with `task` in params
    --way retry        2026-07-28 without tasks: called again with the state that came back
    --way leave        the same, but the connection is closed while the call is held
    --way words        2025-11-25 without tasks: told in words, then `wait_for_proposal`

The report has: what the server said that it can, how the tool is listed, what came first, how often it was asked, and how
the call ended.
"""

import argparse
import asyncio
import json
import re
import sys
import traceback
import warnings

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from following import Tasks, task


def end(result):
    texts = [block.text for block in result.content if block.type == "text"]
    return {"text": "\n".join(texts), "error": bool(result.is_error)}


async def retry(session, report, name, arguments):
    state = None
    while True:
        result = await session.call_tool(name, arguments, request_state=state, allow_input_required=True)
        report["asked"] += 1
        if not isinstance(result, types.InputRequiredResult):
            return result
        report.setdefault("first", result.model_dump(by_alias=True, mode="json", exclude_none=True))
        state = result.request_state


async def words(client, report, name, arguments):
    result = await client.call_tool(name, arguments)
    report["first"] = end(result)
    if not end(result)["text"].startswith("Not done yet"):
        return result
    proposal = re.search(r'"id":"([^"]+)"', report["first"]["text"]).group(1)
    while True:
        result = await client.call_tool("wait_for_proposal", {"id": proposal})
        report["asked"] += 1
        if not end(result)["text"].startswith("Not done yet"):
            return result


async def run(options, report):
    headers = {"Authorization": f"Bearer {options.token}"}
    http = httpx2.AsyncClient(headers=headers, timeout=60)
    legacy = options.way in ("task", "words")
    client = Client(
        streamable_http_client(options.url, http_client=http),
        mode="legacy" if legacy else "auto",
        read_timeout_seconds=30,
        extensions=[Tasks(report)] if options.way == "tasks" else None,
        cache=None,
    )
    name, arguments = options.tool, json.loads(options.arguments)
    async with client:
        report["protocol"] = client.protocol_version
        report["able"] = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
        tools = (await client.list_tools()).tools
        found = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools if tool.name == name]
        report["listed"] = found[0] if found else None
        if options.way == "task":
            result = await task(client.session, report, name, arguments)
        elif options.way == "retry":
            result = await retry(client.session, report, name, arguments)
        elif options.way == "words":
            result = await words(client, report, name, arguments)
        elif options.way == "leave":
            call = asyncio.ensure_future(retry(client.session, report, name, arguments))
            await asyncio.sleep(2)
            call.cancel()
            return
        else:
            result = await client.call_tool(name, arguments)
        report["end"] = end(result)


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--token", required=True)
    parser.add_argument("--way", choices=("tasks", "task", "retry", "leave", "words"), required=True)
    parser.add_argument("tool")
    parser.add_argument("arguments")
    report = {"asked": 0}
    try:
        asyncio.run(asyncio.wait_for(run(parser.parse_args(), report), 60))
    except BaseException as error:  # everything is reported, even what asyncio raises
        report["failure"] = "".join(traceback.format_exception(error))
    print(json.dumps(report, indent=1, default=str))
    sys.exit(1 if "failure" in report else 0)


main()
