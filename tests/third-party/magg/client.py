"""Magg's own clients against an endpoint, unmodified.

    client.py old URL            the transparent ProxyClient of an older Magg
    client.py client URL         ProxyClient against a gateway with the fixture as `up` and the tool `proxy`
    client.py upstream URL COMMAND [ARGUMENT ...]
                                 a gateway with Magg as `magg`, compared with that Magg itself on a pipe

The last line is JSON: what was seen.
"""

import asyncio
import json
import os
import sys

from magg.proxy.client import ProxyClient

if sys.argv[1] != "old":
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport
    from magg.proxy.mixin import ProxyMCP
    from magg.util.transform import tool_result_as_prompt_result, tool_result_as_resource_result

TEMPLATE = "test://template/7/data"


async def as_old_client(url):
    async with ProxyClient(url, transparent=True) as client:
        lists = [await client.list_tools(), await client.list_resources(), await client.list_prompts()]
        called = await client.call_tool("up_echo", {"text": "x"})
        read = await client.read_resource(TEMPLATE)
    return {"listed": [len(items) for items in lists], "called": called[0].text, "read": read[0].text}


async def as_client(url):
    seen = {}
    async with ProxyClient(url) as client:
        for kind in ("tool", "resource", "prompt"):
            listed = await client.proxy(kind, "list")
            items = ProxyMCP.get_proxy_query_result(listed.content[0])
            assert isinstance(items, list) and items, kind
            seen[kind] = sorted({type(item).__name__ for item in items})
            seen[f"{kind}s"] = len(items)
        for kind, name in (("tool", "up_echo"), ("prompt", "up_test_simple_prompt")):
            info = await client.proxy(kind, "info", name)
            assert ProxyMCP.get_proxy_query_result(info.content[0]).name == name
        called = await client.proxy("tool", "call", "up_echo", {"text": "hi"})
        assert called.content[0].text == "hi"
        assert called.content[0].annotations.proxyPath == "up_echo", called
        added = await client.proxy("tool", "call", "up_add", {"a": 2, "b": 3})
        assert added.structured_content == {"sum": 5}, added
        read = await client.proxy("resource", "call", TEMPLATE)
        resource = tool_result_as_resource_result(read.content[0])
        assert resource.mimeType == "application/json", resource
        got = await client.proxy("prompt", "call", "up_test_prompt_with_arguments", {"arg1": "Bob", "arg2": "x"})
        prompt = tool_result_as_prompt_result(got.content[0])
        assert "Bob" in prompt.messages[0].content.text, prompt
        more = {"action": "list", "type": "tool"}
        empty = await client.call_tool("proxy", more | {"filter_server": "absent"})
        assert ProxyMCP.get_proxy_query_result(empty.content[0]) == [], empty
        page = await client.call_tool("proxy", more | {"limit": 2, "offset": 1})
        assert len(ProxyMCP.get_proxy_query_result(page.content[0])) == 2
        errors = []
        for name, arguments in (("up_test_error_handling", None), ("absent", None)):
            try:
                await client.proxy("tool", "call", name, arguments)
                raise SystemExit(f"{name} must fail")
            except Exception as error:
                errors.append(str(error))
        seen["errors"] = errors
    async with ProxyClient(url, transparent=True) as client:
        answer = await client.call_tool("up_echo", {"text": "x"})
        assert answer.content[0].text == "x", answer
        seen["transparent"] = answer.content[0].text
    return seen


def shown(item):
    return item.model_dump(mode="json", by_alias=True)


async def tour(client, tool):
    """What every action of a proxy tool returns, with all annotations."""
    seen = {}
    for kind, name, arguments in (
        ("tool", "up_echo", {"text": "hi"}),
        ("resource", TEMPLATE.replace("test://", "test://up/"), None),
        ("prompt", "up_test_simple_prompt", None),
    ):
        calls = [{"action": "list", "type": kind}, {"action": "call", "type": kind, "path": name}]
        if kind != "resource":
            calls.append({"action": "info", "type": kind, "path": name})
        if arguments:
            calls[1]["args"] = arguments
        for call in calls:
            result = await client.call_tool(tool, call)
            seen[f"{kind} {call['action']}"] = [shown(item) for item in result.content]
    return seen


async def as_upstream(url, command):
    async with Client(StdioTransport(command[0], command[1:], env=dict(os.environ))) as client:
        direct = await tour(client, "proxy")
    async with Client(url) as client:
        through = await tour(client, "magg_proxy")
    different = [key for key in direct if direct[key] != through[key]]
    assert not different, {key: (direct[key], through[key]) for key in different}
    notes = {key: sorted(items[0]["annotations"]) for key, items in direct.items()}
    return {"equal": sorted(direct), "annotations": notes}


async def main():
    mode, url, *rest = sys.argv[1:]
    run = {"old": as_old_client, "client": as_client, "upstream": as_upstream}[mode]
    print(json.dumps(await run(url, *([rest] if rest else []))))


asyncio.run(main())
