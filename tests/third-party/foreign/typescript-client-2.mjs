// requires: @modelcontextprotocol/client@2.4.0
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const client = new Client({ name: "foreign", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const { tools } = await client.listTools();
const answer = await client.callTool({ name: "everything_echo", arguments: { message: "hi" } });
console.log(tools.length, JSON.stringify(answer));
await client.close();
