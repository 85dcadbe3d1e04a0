// The identity provider of the authorization tests: npm's `oidc-provider` on a free port of loopback, with keys that can be
// rotated, answers that can fail or wait, and tokens that can be forged. `POST /control` takes `{ "op": ... }`. A fault is for
// one path: `hold` keeps a request from the provider, `mute` has the provider act on it and keeps the answer, `cut` ends the
// connection, `answer` answers in the provider's place. `heal` ends all faults; `clear` also lets go of what is kept, `drop` forgets it.
import { createHash, createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign as signBytes, verify as verifyBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.env.IDP_MODULES + '/package.json');
const { Provider, errors } = await import(pathToFileURL(require.resolve('oidc-provider')).href);

const known = JSON.parse(process.env.IDP_RESOURCES ?? '[]');
let ttl = Number(process.env.IDP_TTL ?? 600);
const keys = {};
const asked = {};
const faults = {};
const kept = [];
const secrets = [];
const more = [];
let got = '';
let mode = 'up';
let serve;
let issuer;

// The key of this name, made when it is first asked for: most tests use one.
function key(kid) {
  return keys[kid] ??= generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
}

const jwk = (kid) => ({ ...key(kid).export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' });

function provider(kids) {
  const machine = (id, grant_types = ['client_credentials']) =>
    ({ client_id: id, client_secret: `${id}-secret`, grant_types, redirect_uris: [], response_types: [] });
  const configuration = {
    clients: [...more, machine('machine'), machine('stranger'), machine('gateway'),
      { client_id: 'desk', token_endpoint_auth_method: 'none', application_type: 'native',
        grant_types: ['authorization_code', 'refresh_token'], redirect_uris: ['http://127.0.0.1/callback'] }],
    jwks: { keys: kids.map(jwk) },
    scopes: ['openid', 'offline_access', 'mcp:read', 'mcp:write'],
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    findAccount: async (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: async (_, token) => {
      const id = token.accountId ?? token.clientId;
      return { preferred_username: id, groups: { ann: ['staff', 'ops'], machine: ['machines'], stranger: [] }[id] ?? ['staff'] };
    },
    ttl: { AccessToken: () => ttl, ClientCredentials: () => ttl },
    features: {
      devInteractions: { enabled: true }, clientCredentials: { enabled: true }, introspection: { enabled: true },
      revocation: { enabled: true }, registration: { enabled: true }, deviceFlow: { enabled: true },
      resourceIndicators: {
        enabled: true, defaultResource: () => undefined, useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => {
          if (!known.includes(resource.replace(/\?.*/, ''))) throw new errors.InvalidTarget();
          const opaque = resource.endsWith('?opaque');
          return { scope: 'mcp:read mcp:write', audience: resource.replace(/\?.*/, ''),
            accessTokenFormat: opaque ? 'opaque' : 'jwt', jwt: { sign: { alg: 'RS256' } } };
        },
      },
    },
  };
  if (process.env.IDP_DOCUMENTS) {
    configuration.features.clientIdMetadataDocument = { enabled: true, ack: 'draft-02' };
    // Its own would refuse a document on loopback.
    configuration.fetch = (url, { dispatcher, ...options }) => globalThis.fetch(url, options);
  }
  return new Provider(issuer, configuration).callback();
}

const base64url = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

function forge({ header, claims, key: signer }) {
  const signed = `${base64url(header)}.${base64url(claims)}`;
  if (signer === 'none') return `${signed}.`;
  if (signer === 'hmac') {
    const secret = createPublicKey(key('a')).export({ type: 'spki', format: 'pem' });
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
  }
  return `${signed}.${signBytes('sha256', Buffer.from(signed), key(signer ?? 'a')).toString('base64url')}`;
}

// The claims of a token that a resource server accepts; null for any other.
function accepted({ token, audience }) {
  const [header, claims, signature] = token.split('.');
  if (!signature) return null;
  const read = (part) => JSON.parse(Buffer.from(part, 'base64url').toString());
  const signer = keys[read(header).kid];
  const signed = signer && verifyBytes('sha256', Buffer.from(`${header}.${claims}`), createPublicKey(signer), Buffer.from(signature, 'base64url'));
  const said = read(claims);
  return signed && said.iss === issuer && said.aud === audience ? said : null;
}

// Notes what an answer issues.
function note(path, response, body) {
  const location = response.getHeader('location');
  const code = location && new URL(location, issuer).searchParams.get('code');
  if (code) secrets.push(['code', code]);
  if (!['/token', '/reg', '/device/auth'].includes(path)) return;
  try {
    const said = JSON.parse(body);
    for (const name of ['access_token', 'refresh_token', 'device_code', 'client_secret', 'registration_access_token']) {
      if (said[name]) secrets.push([name, said[name]]);
    }
  } catch { /* an answer without secrets */ }
}

// Serves a request; its answer waits if it is to be mute.
function pass(path, request, response, isMute) {
  const end = response.end.bind(response);
  response.end = (...body) => {
    note(path, response, String(body[0] ?? ''));
    if (isMute) { asked.kept = (asked.kept ?? 0) + 1; kept.push(() => end(...body)); } else end(...body);
    return response;
  };
  serve(request, response);
}

// Whether a fault took the request.
function fails(path, request, response) {
  const fault = faults[path];
  if (!fault) return false;
  switch (fault.kind) {
    case 'hold':
      asked.kept = (asked.kept ?? 0) + 1;
      kept.push(() => pass(path, request, response, false));
      return true;
    case 'mute': pass(path, request, response, true); return true;
    case 'cut': request.socket.destroy(); return true;
    case 'answer':
      response.writeHead(fault.status ?? 200, { 'content-type': 'application/json', ...fault.headers });
      response.end(fault.bytes ? 'x'.repeat(fault.bytes) : fault.body ?? '');
      return true;
    default: throw new Error(`no such fault: ${fault.kind}`);
  }
}

// RFC 7638.
function thumbprint({ crv, kty, x, y }) {
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
}

function control(order) {
  switch (order.op) {
    case 'fault': faults[order.path] = order; return {};
    case 'heal':
    case 'clear':
    case 'drop':
      for (const path of Object.keys(faults)) delete faults[path];
      if (order.op !== 'heal') for (const go of kept.splice(0)) if (order.op === 'clear') go();
      return {};
    case 'client':
      for (const key of order.client.jwks?.keys ?? []) key.kid = thumbprint(key);
      more.push(order.client);
      serve = provider(['a']);
      return {};
    case 'got': return { got };
    case 'secrets': return { secrets };
    case 'ttl': ttl = order.seconds; return {};
    case 'accepted': return { claims: accepted(order) };
    case 'mode': mode = order.mode; return {};
    case 'keys': serve = provider(order.keys); return {};
    case 'forge': return { token: forge(order) };
    case 'asked': return asked;
    default: throw new Error(`no such op: ${order.op}`);
  }
}

const server = createServer((request, response) => {
  const path = request.url.split('?')[0];
  if (path === '/control') {
    let text = '';
    request.on('data', (part) => { text += part; });
    request.on('end', () => {
      const answer = JSON.stringify(control(JSON.parse(text)));
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
      response.end(answer);
    });
    return;
  }
  asked[path] = (asked[path] ?? 0) + 1;
  got += `${request.url} ${JSON.stringify(request.rawHeaders)}\n`;
  if (mode === 'down') { response.writeHead(503, { 'content-length': 0 }); response.end(); return; }
  if (mode === 'dead') { request.socket.destroy(); return; }
  if (mode === 'silent') return;
  if (mode === 'lying') {
    const lie = JSON.stringify({ issuer: 'https://elsewhere.example', jwks_uri: 'http://169.254.169.254/', keys: [{ kty: 'oct', k: 'AAAA' }] });
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': lie.length });
    response.end(lie);
    return;
  }
  if (!fails(path, request, response)) pass(path, request, response, false);
});

server.listen(0, '127.0.0.1', () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  serve = provider(['a']);
  console.log(`listening on ${issuer}`);
});
