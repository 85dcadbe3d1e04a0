// An MCP server with the demonstration authorization server of the official TypeScript SDK, on a free port of loopback. The provider
// compares redirect URIs byte for byte and asks no person: the authorization endpoint redirects at once. The tool `hello` answers with
// the client's id. Prints `listening on http://HOST:PORT`.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.DEPS_MODULES + '/package.json');
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const sdk = (name) => load(`@modelcontextprotocol/sdk/${name}`);

const express = (await load('express')).default;
const { DemoInMemoryAuthProvider } = await sdk('examples/server/demoInMemoryOAuthProvider.js');
const { mcpAuthRouter, getOAuthProtectedResourceMetadataUrl } = await sdk('server/auth/router.js');
const { requireBearerAuth } = await sdk('server/auth/middleware/bearerAuth.js');
const { McpServer } = await sdk('server/mcp.js');
const { StreamableHTTPServerTransport } = await sdk('server/streamableHttp.js');

const app = express();
const listener = createServer(app);
listener.listen(0, '127.0.0.1', () => {
  const origin = new URL(`http://127.0.0.1:${listener.address().port}`);
  const resource = new URL('/mcp', origin);
  const isOwn = (asked) => asked?.href === resource.href;
  const provider = new DemoInMemoryAuthProvider(isOwn);
  app.use(mcpAuthRouter({ provider, issuerUrl: origin, resourceServerUrl: resource, scopesSupported: ['notes'] }));
  const guard = requireBearerAuth({
    verifier: provider,
    requiredScopes: ['notes'],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  });
  app.all('/mcp', guard, express.json(), async (request, response) => {
    const server = new McpServer({ name: 'authorizes', version: '1' });
    server.registerTool('hello', { description: 'Says which client asks.' }, ({ authInfo }) => (
      { content: [{ type: 'text', text: `hello ${authInfo.clientId}` }] }));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => transport.close());
    await server.connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  console.log(`listening on ${origin.origin}`);
});
