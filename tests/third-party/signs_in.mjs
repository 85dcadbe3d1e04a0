// The TypeScript SDK as a client that signs in at oidc-provider: lists and calls at a URL, and prints one JSON report.
//
//     node signs_in.mjs URL ACCOUNT [--sdk 1|2] [--client-id ID] [--later SECONDS]
//
// The browser is this program: it goes through the provider's two forms as ACCOUNT. The report has `tools`, `call`, `later` (the tools
// after this time, when the access token has expired), `refreshed`, and `authorized`, the scopes of each visit to the
// authorization endpoint.
import { createRequire } from 'node:module';

const require = createRequire(process.env.NPM_MODULES + '/package.json');

const [url, account, ...rest] = process.argv.slice(2);
const option = (name) => { const at = rest.indexOf(name); return at < 0 ? undefined : rest[at + 1]; };
const isFirst = option('--sdk') !== '2';
const parts = isFirst ? ['index', 'streamableHttp', 'auth'].map((part) => `sdk/client/${part}.js`) : ['client'];
const { Client, StreamableHTTPClientTransport, UnauthorizedError } =
  Object.assign({}, ...parts.map((part) => require(`@modelcontextprotocol/${part}`)));
const redirect = 'http://127.0.0.1/callback';
const report = { authorized: [] };
let back;

class Account {
  redirectUrl = redirect;
  clientMetadata = {
    redirect_uris: [redirect], client_name: 'test', token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
  };
  known = option('--client-id') ? { client_id: option('--client-id'), redirect_uris: [redirect] } : undefined;
  clientInformation() { return this.known; }
  saveClientInformation(known) { this.known = known; }
  tokens() { return this.kept; }
  saveTokens(tokens) { this.kept = tokens; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
  async redirectToAuthorization(to) {
    report.authorized.push(to.searchParams.get('scope') ?? '');
    back = await visit(to);
  }
}

/** Goes from the authorization endpoint to the redirect, with cookies; returns its parameters. */
async function visit(at) {
  const cookies = new Map();
  let form;
  for (let step = 0; step < 20; step += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(at, { method: form ? 'POST' : 'GET', body: form, redirect: 'manual', headers: { cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [name, value] = line.split(';')[0].split(/=(.*)/s);
      cookies.set(name, value);
    }
    form = undefined;
    if (answer.status >= 300 && answer.status < 400) {
      at = new URL(answer.headers.get('location'), at);
      if (at.href.startsWith(redirect)) {
        if (!at.searchParams.get('code')) throw new Error(`the provider answers ${at.search}`);
        return at.searchParams;
      }
      continue;
    }
    const html = await answer.text();
    const [, action] = /action="([^"]+)"/.exec(html) ?? [];
    const [, prompt] = /name="prompt" value="([^"]+)"/.exec(html) ?? [];
    if (!action || !prompt) throw new Error(`${answer.status}: ${html.slice(0, 2000)}`);
    form = new URLSearchParams(prompt === 'login' ? { prompt, login: account, password: 'any' } : { prompt });
    at = new URL(action, at);
  }
  throw new Error('the provider never redirects to the client');
}

async function connect(authProvider) {
  const open = async () => {
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
    const client = new Client({ name: 'test', version: '0' });
    try {
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError) || !back) throw error;
      await transport.finishAuth(isFirst ? back.get('code') : back);
      back = undefined;
      return undefined;
    }
  };
  return (await open()) ?? (await open());
}

try {
  const authProvider = new Account();
  const client = await connect(authProvider);
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  report.tools = await names();
  report.call = (await client.callTool({ name: 'a_echo', arguments: { text: 'hello' } })).content[0].text;
  if (option('--later')) {
    // Its stream ends with the token, and it renews that then.
    const before = authProvider.kept.access_token;
    await new Promise((done) => { setTimeout(done, 1000 * Number(option('--later'))); });
    report.later = await names();
    report.refreshed = authProvider.kept.access_token !== before;
  }
  await client.close();
} catch (error) {
  report.error = String(error.stack ?? error);
}
console.log(JSON.stringify(report));
process.exit(report.error ? 1 : 0);
