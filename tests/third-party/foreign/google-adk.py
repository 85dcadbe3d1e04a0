# requires: google-adk[mcp]==2.13.0
import asyncio
import sys

from google.adk.tools.mcp_tool.mcp_session_manager import StreamableHTTPConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset


async def main():
    tools = McpToolset(connection_params=StreamableHTTPConnectionParams(url=sys.argv[1]))
    count = len(await tools.get_tools())
    session = await tools._mcp_session_manager.create_session()
    print(count, await session.call_tool("everything_echo", {"message": "hi"}))
    await tools.close()


asyncio.run(main())
