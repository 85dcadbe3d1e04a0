#!/usr/bin/env python3
"""An MCP server with an authorization server of its own, on a free port of loopback, as people write them in Python.

    authorizes.py fastmcp         FastMCP with its own `InMemoryOAuthProvider`
    authorizes.py sdk [SECONDS]   the official Python SDK with its authorization routes, and a provider that keeps all in memory, whose
                                  access tokens are good for this time (default 600)

Both compare redirect URIs byte for byte and read `client_id` from the form of a token request. They ask no person: the authorization
endpoint redirects at once. The tool `hello` answers with the client's id. Prints `listening on http://HOST:PORT`.
"""

import asyncio
import secrets
import socket
import sys
import time

import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken

SCOPES = ["notes"]


class Provider:
    """Clients, codes and tokens in memory: what the SDK leaves to its users."""

    def __init__(self, lifetime):
        self.lifetime = lifetime
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client):
        self.clients[client.client_id] = client

    async def authorize(self, client, asked):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            client_id=client.client_id,
            scopes=asked.scopes or SCOPES,
            expires_at=time.time() + 60,
            code_challenge=asked.code_challenge,
            redirect_uri=asked.redirect_uri,
            redirect_uri_provided_explicitly=asked.redirect_uri_provided_explicitly,
            resource=asked.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(asked.redirect_uri), code=code.code, state=asked.state)

    async def load_authorization_code(self, client, code):
        return self.codes.get(code)

    async def exchange_authorization_code(self, client, code):
        del self.codes[code.code]
        return self.issue(client, code.scopes, code.resource)

    async def load_refresh_token(self, client, token):
        return self.refresh.get(token)

    async def exchange_refresh_token(self, client, token, scopes):
        del self.refresh[token.token]
        return self.issue(client, scopes, None)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def issue(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        token = {"client_id": client.client_id, "scopes": scopes}
        until = int(time.time()) + self.lifetime
        self.access[access] = AccessToken(token=access, resource=resource, expires_at=until, **token)
        self.refresh[refresh] = RefreshToken(token=refresh, **token)
        return OAuthToken(
            access_token=access,
            token_type="Bearer",
            expires_in=self.lifetime,
            scope=" ".join(scopes),
            refresh_token=refresh,
        )


def of_fastmcp(origin):
    from fastmcp import FastMCP
    from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

    options = ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES)
    auth = InMemoryOAuthProvider(
        base_url=origin,
        client_registration_options=options,
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=SCOPES,
    )
    server = FastMCP("authorizes", auth=auth)
    server.tool(hello)
    return server.http_app(path="/mcp")


def of_sdk(origin):
    from mcp.server.mcpserver import MCPServer

    auth = AuthSettings(
        issuer_url=origin,
        resource_server_url=f"{origin}/mcp",
        client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=SCOPES, default_scopes=SCOPES),
        revocation_options=RevocationOptions(enabled=True),
        required_scopes=SCOPES,
        validate_token_resource=False,
    )
    server = MCPServer("authorizes", auth=auth, auth_server_provider=Provider(int((sys.argv[2:] or [600])[0])))
    server.tool()(hello)
    return server.streamable_http_app()


def hello() -> str:
    """Says which client asks."""
    return f"hello {get_access_token().client_id}"


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app = {"fastmcp": of_fastmcp, "sdk": of_sdk}[sys.argv[1]](origin)
    print(f"listening on {origin}", flush=True)
    asyncio.run(uvicorn.Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[listener]))


main()
