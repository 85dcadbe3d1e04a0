#!/usr/bin/env python3
"""FastMCP's client as it is, with its own sign-in (`auth="oauth"`): lists and calls at a URL, and prints one JSON report.

    fastmcp_signs_in.py URL CODE [--later SECONDS]

The person's browser is this program: it goes through the pages of the gateway's own authorization server, where CODE is a one-time
code, to FastMCP's callback server. The report has `tools`, `call`, `later` (the tools after this time, when the access token has
expired) and `visits`, how often the browser was opened.
"""

import argparse
import asyncio
import html
import json
import re
import sys
import threading
import traceback
import webbrowser
from urllib.parse import urljoin

import httpx2
from fastmcp import Client


class Browser(webbrowser.BaseBrowser):
    """Opens an address and fills in the forms."""

    def __init__(self, code):
        super().__init__()
        self.code, self.visits = code, 0

    def open(self, url, new=0, autoraise=True):
        self.visits += 1
        threading.Thread(target=self.visit, args=(url,), daemon=True).start()
        return True

    def visit(self, url):
        with httpx2.Client(follow_redirects=True, timeout=30) as http:
            page = http.get(url)
            while "<form" in page.text and 'name="request"' in page.text:
                form = page.text.split("</form>")[0]
                action = html.unescape(re.search(r'action="([^"]+)"', form).group(1))
                hidden = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', form))
                more = {"code": self.code} if 'name="code"' in form else {"decision": "allow"}
                page = http.post(urljoin(str(page.request.url), action), data=hidden | more)


async def run(options, report, browser):
    async with Client(options.url, auth="oauth") as client:
        async def names():
            return [tool.name for tool in await client.list_tools()]

        report["tools"] = await names()
        report["call"] = (await client.call_tool("a_echo", {"text": "hello"})).content[0].text
        # The time in which the access token expires.
        await asyncio.sleep(options.later)
        report["later"] = await names()
    report["visits"] = browser.visits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("code")
    parser.add_argument("--later", type=float, default=0)
    options = parser.parse_args()
    browser = Browser(options.code)
    webbrowser.register("person", None, browser, preferred=True)
    report = {}
    try:
        asyncio.run(run(options, report, browser))
    except BaseException:
        report["error"] = traceback.format_exc()
    print(json.dumps(report))
    sys.exit(1 if "error" in report else 0)


main()
