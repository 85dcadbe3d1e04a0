# requires: langchain-mcp-adapters==0.3.2
import asyncio
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main():
    client = MultiServerMCPClient({"gateway": {"url": sys.argv[1], "transport": "streamable_http"}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    print(len(tools), await tools["everything_echo"].ainvoke({"message": "hi"}))


asyncio.run(main())
