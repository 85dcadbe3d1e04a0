# requires: pydantic-ai-slim[mcp]==2.68.0
import asyncio
import sys

from pydantic_ai.mcp import MCPToolset


async def main():
    async with MCPToolset(sys.argv[1]) as tools:
        print(len(await tools.list_tools()), await tools.direct_call_tool("everything_echo", {"message": "hi"}))


asyncio.run(main())
