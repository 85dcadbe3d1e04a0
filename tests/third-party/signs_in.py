#!/usr/bin/env python3
"""The Python SDK as a client that signs in (`OAuthClientProvider`): lists and calls at a URL, and prints one JSON report.

    signs_in.py URL ACCOUNT [options]

    --era legacy|modern   how to open (default legacy)
    --client-id ID        a client that is registered already; without it the client registers itself
    --client-metadata-url URL
                          a client that publishes a document about itself there
    --call NAME JSON      call this tool (may be repeated)

    --later SECONDS       list again after this time, when the access token has expired

The browser is this program: it goes through the two forms of oidc-provider's `devInteractions` as ACCOUNT, or through those of
the gateway's own authorization server, where ACCOUNT is a one-time code. The report has `later`, the tools that were listed then,
`tools`, `calls` (text, or error), and `authorized`, the scopes of each visit to the authorization endpoint.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
import traceback
from urllib.parse import parse_qs, urljoin, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata

REDIRECT = "http://127.0.0.1/callback"


class Memory:
    """Tokens and the registration of one client."""

    def __init__(self, client_id):
        self.tokens = None
        self.client = None
        if client_id:
            self.client = OAuthClientInformationFull(
                client_id=client_id, redirect_uris=[REDIRECT], token_endpoint_auth_method="none",
                grant_types=["authorization_code", "refresh_token"])

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class Browser:
    """Goes from the authorization endpoint to the redirect, with cookies."""

    def __init__(self, account):
        self.account = account
        self.authorized = []
        self.result = None
        self.cookies = httpx2.Cookies()

    async def visit(self, url):
        self.authorized.append((parse_qs(urlparse(url).query).get("scope") or [""])[0])
        async with httpx2.AsyncClient(follow_redirects=False, timeout=30, cookies=self.cookies) as http:
            self.cookies = http.cookies
            answer = await http.get(url)
            for _ in range(20):
                if answer.is_redirect:
                    url = urljoin(str(answer.request.url), answer.headers["location"])
                    if url.startswith(REDIRECT):
                        self.result = {name: values[0] for name, values in parse_qs(urlparse(url).query).items()}
                        return
                    answer = await http.get(url)
                    continue
                action = re.search(r'action="([^"]+)"', answer.text)
                if 'name="request"' in answer.text:
                    answer = await http.post(urljoin(str(answer.request.url), action.group(1)), data=self.form(answer.text))
                    continue
                prompt = re.search(r'name="prompt" value="([^"]+)"', answer.text)
                if not action or not prompt:
                    raise RuntimeError(f"{answer.status_code}: {answer.text[:2000]}")
                form = {"prompt": prompt.group(1)}
                if prompt.group(1) == "login":
                    form |= {"login": self.account, "password": "any"}
                answer = await http.post(urljoin(str(answer.request.url), action.group(1)), data=form)
        raise RuntimeError("the provider never redirects to the client")

    def code(self):
        """A one-time code: ACCOUNT, or what the command prints that ACCOUNT is after a `!`."""
        if not self.account.startswith("!"):
            return self.account
        return json.loads(subprocess.run(self.account[1:], shell=True, check=True, capture_output=True).stdout)["code"]

    def form(self, html):
        """The first form of the gateway's own pages, filled in: ACCOUNT is a one-time code there."""
        html = html.split("</form>")[0]
        hidden = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', html)
        return dict(hidden) | ({"code": self.code()} if 'name="code"' in html else {"decision": "allow"})

    async def callback(self):
        if "code" not in self.result:
            raise RuntimeError(f"the provider answers {self.result}")
        return AuthorizationCodeResult(
            code=self.result["code"], state=self.result.get("state"), iss=self.result.get("iss"))


async def run(options, report):
    browser = Browser(options.account)
    report["authorized"] = browser.authorized
    metadata = OAuthClientMetadata(
        redirect_uris=[REDIRECT], client_name="test", token_endpoint_auth_method="none",
        grant_types=["authorization_code", "refresh_token"], response_types=["code"])
    provider = OAuthClientProvider(
        options.url, metadata, Memory(options.client_id),
        redirect_handler=browser.visit, callback_handler=browser.callback,
        client_metadata_url=options.client_metadata_url)
    async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
        transport = streamable_http_client(options.url, http_client=http)
        async with Client(transport, mode="auto" if options.era == "modern" else "legacy") as client:
            listed = await client.list_tools()
            report["tools"] = [tool.name for tool in listed.tools]
            for name, arguments in options.call:
                try:
                    result = await client.call_tool(name, json.loads(arguments))
                    report["calls"].append(result.content[0].text)
                except Exception as error:
                    report["calls"].append({"error": str(error)})
            if options.later:
                await asyncio.sleep(options.later)
                before = provider.context.current_tokens.refresh_token
                report["later"] = [tool.name for tool in (await client.list_tools()).tools]
                report["refreshed"] = provider.context.current_tokens.refresh_token != before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("account")
    parser.add_argument("--era", choices=["legacy", "modern"], default="legacy")
    parser.add_argument("--client-id")
    parser.add_argument("--client-metadata-url")
    parser.add_argument("--later", type=float, default=0)
    parser.add_argument("--call", nargs=2, action="append", default=[])
    options = parser.parse_args()
    report = {"tools": [], "calls": []}
    try:
        asyncio.run(run(options, report))
    except BaseException:
        report["error"] = traceback.format_exc()
    print(json.dumps(report))
    sys.exit(1 if "error" in report else 0)


main()
