#!/usr/bin/env python3
"""The Python SDK as a client that has a person open URLs: calls one tool until that gives a result.

    url_consent.py URL TOKEN TOOL [--era legacy|modern]

It prints a line of JSON with `url` whenever a URL is to be opened, and waits for a line on stdin before it goes on. The last line
has `text`, what the tool said, and `completed`, the ids of the elicitations whose end was announced.
"""

import argparse
import asyncio
import json
import sys

import httpx2
from mcp import Client, MCPError, UrlElicitationRequiredError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult


async def opened(url):
    print(json.dumps({"url": url}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)


async def run(options):
    completed = []

    async def elicit(context, params):
        await opened(params.url)
        return ElicitResult(action="accept")

    async def notice(message):
        if getattr(message, "method", None) == "notifications/elicitation/complete":
            completed.append(message.params.elicitation_id)

    headers = {"authorization": f"Bearer {options.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(options.url, http_client=http)
        mode = "auto" if options.era == "modern" else "legacy"
        async with Client(transport, mode=mode, elicitation_callback=elicit, message_handler=notice) as client:
            asked = []
            for _ in range(5):
                try:
                    result = await client.call_tool(options.tool, {})
                    break
                except MCPError as error:
                    required = UrlElicitationRequiredError.from_error(error.error)
                    asked += [one.elicitation_id for one in required.elicitations]
                    await opened(required.elicitations[0].url)
            for _ in range(100):
                if set(asked) <= set(completed):
                    break
                await asyncio.sleep(0.1)
    print(json.dumps({"text": result.content[0].text, "asked": asked, "completed": completed}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("tool")
    parser.add_argument("--era", choices=["legacy", "modern"], default="legacy")
    asyncio.run(run(parser.parse_args()))


main()
