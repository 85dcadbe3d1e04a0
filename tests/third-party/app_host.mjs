// A host of MCP Apps on the official host code: opens apps at a URL, has their pages call tools, and prints one JSON report.
//
//     node app_host.mjs URL TOKEN legacy|modern PLAN
//
// PLAN is a JSON list of `{ "open": TOOL, "calls": [NAME, ...] }`. For each, the host finds the app of the tool that it lists under
// that name, reads its page, and connects an `App`, as a page in its frame does, by an `AppBridge` to the client. The report has
// `extensions` (what the server declares), `tools` (name to resource, of those with an app), and `apps`: for each the page's `title`,
// and the texts or error of its calls.
import { pathToFileURL } from 'node:url';

const module = (path) => import(pathToFileURL(`${process.env.NPM_MODULES}/@modelcontextprotocol/${path}`));
const { Client, InMemoryTransport, StreamableHTTPClientTransport } = await module('client/dist/index.mjs');
const { AppBridge, RESOURCE_MIME_TYPE, getToolUiResourceUri } = await module('ext-apps/dist/src/app-bridge.js');
const { App } = await module('ext-apps/dist/src/app.js');

const [url, token, era, plan] = process.argv.slice(2);
const about = { name: 'host', version: '1' };
const capabilities = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } } };
const versionNegotiation = { mode: era === 'modern' ? { pin: '2026-07-28' } : 'legacy' };
const client = new Client(about, { capabilities, versionNegotiation });
const headers = { authorization: `Bearer ${token}` };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));

const { tools } = await client.listTools();
const withApps = tools.flatMap((tool) => [[tool.name, getToolUiResourceUri(tool)]]).filter(([, uri]) => uri);
const report = {
  extensions: client.getServerCapabilities()?.extensions, tools: Object.fromEntries(withApps), apps: [],
};

for (const { open, calls } of JSON.parse(plan)) {
  const { contents } = await client.readResource({ uri: report.tools[open] });
  const title = /<title>(.*)<\/title>/.exec(contents[0].text)?.[1];
  const [host, frame] = InMemoryTransport.createLinkedPair();
  const bridge = new AppBridge(client, about, { serverTools: {}, serverResources: {} });
  await bridge.connect(host);
  const app = new App({ name: 'board', version: '1' }, {}, { autoResize: false });
  await app.connect(frame);
  const called = [];
  for (const name of calls) {
    try {
      const result = await app.callServerTool({ name, arguments: { text: 'it' } });
      called.push({ name, text: result.content[0].text, failed: result.isError === true });
    } catch (error) {
      called.push({ name, error: error.message });
    }
  }
  report.apps.push({ title, mimeType: contents[0].mimeType, uri: contents[0].uri, called });
  await app.close();
}
console.log(JSON.stringify(report));
await client.close();
process.exit(0);
