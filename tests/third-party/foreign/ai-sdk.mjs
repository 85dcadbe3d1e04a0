// requires: @ai-sdk/mcp@2.0.99
import { createMCPClient } from "@ai-sdk/mcp";

const client = await createMCPClient({ transport: { type: "http", url: process.argv[2] } });
const tools = await client.tools();
const answer = await tools.everything_echo.execute({ message: "hi" }, { messages: [], toolCallId: "1" });
console.log(Object.keys(tools).length, JSON.stringify(answer));
await client.close();
