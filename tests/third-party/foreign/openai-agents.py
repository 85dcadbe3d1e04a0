# requires: openai-agents==0.24.0
import asyncio
import sys

from agents.mcp import MCPServerStreamableHttp


async def main():
    async with MCPServerStreamableHttp(params={"url": sys.argv[1]}) as server:
        print(len(await server.list_tools()), await server.call_tool("everything_echo", {"message": "hi"}))


asyncio.run(main())
