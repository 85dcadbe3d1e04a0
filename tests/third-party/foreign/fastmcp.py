# requires: fastmcp==4.0.0
import asyncio
import sys

from fastmcp import Client


async def main():
    async with Client(sys.argv[1]) as client:
        print(len(await client.list_tools()), await client.call_tool("everything_echo", {"message": "hi"}))


asyncio.run(main())
