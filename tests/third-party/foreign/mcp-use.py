# requires: mcp-use==1.7.1
import asyncio
import sys

from mcp_use import MCPClient


async def main():
    client = MCPClient.from_dict({"mcpServers": {"gateway": {"url": sys.argv[1]}}})
    session = await client.create_session("gateway")
    print(len(await session.list_tools()), await session.call_tool("everything_echo", {"message": "hi"}))
    await client.close_all_sessions()


asyncio.run(main())
