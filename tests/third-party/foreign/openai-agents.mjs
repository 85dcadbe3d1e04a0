// requires: @openai/agents@0.20.0
import { MCPServerStreamableHttp } from "@openai/agents";

const server = new MCPServerStreamableHttp({ url: process.argv[2] });
await server.connect();
const tools = await server.listTools();
console.log(tools.length, JSON.stringify(await server.callTool("everything_echo", { message: "hi" })));
await server.close();
