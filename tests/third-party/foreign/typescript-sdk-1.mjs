// requires: @modelcontextprotocol/sdk@1.32.2
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "foreign", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const { tools } = await client.listTools();
const answer = await client.callTool({ name: "everything_echo", arguments: { message: "hi" } });
console.log(tools.length, JSON.stringify(answer));
await client.close();
