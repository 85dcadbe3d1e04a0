"""Requests to the REST API, before a server in this process."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from portmoot import Answered, Refused
from portmoot._api import post
from portmoot._connection import Address
from portmoot.errors import NotConnected

pytestmark = pytest.mark.anyio


class Api(HTTPServer):
    """Answers each request with this, and keeps what was asked."""

    answer: tuple[int, bytes] = (200, b"{}")
    asked: tuple[str, str | None, Any] = ("", None, None)

    @property
    def address(self) -> Address:
        url = f"http://127.0.0.1:{self.server_port}/base/mcp"
        return Address(url, "a token", "main", "all", False, None, 5)


class Handler(BaseHTTPRequestHandler):
    server: Api

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked = (self.path, self.headers["Authorization"], body)
        status, text = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[Api]:
    server = Api(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


async def test_it_posts_below_the_url_of_the_gateway(api: Api) -> None:
    api.answer = (200, b'{"rule":"r1.1"}')
    assert await post(api.address, ["topics", "a/b", "rules"], {"rule": "x"}, 5) == {"rule": "r1.1"}
    assert api.asked == ("/base/api/v1/topics/a%2Fb/rules", "Bearer a token", {"rule": "x"})


async def test_a_refusal_has_its_code_and_its_hint(api: Api) -> None:
    api.answer = (409, b'{"code":"conflict","message":"it is decided","hint":"look again"}')
    with pytest.raises(Refused, match=r"it is decided \(look again\)") as refused:
        await post(api.address, ["x"], {}, 5)
    assert refused.value.code == "conflict"


async def test_an_answer_that_is_no_object_is_an_error(api: Api) -> None:
    for answer in [(200, b"[]"), (502, b"<html>")]:
        api.answer = answer
        with pytest.raises(Answered, match=str(answer[0])):
            await post(api.address, ["x"], {}, 5)


async def test_a_gateway_that_is_gone_is_not_connected() -> None:
    server = Api(("127.0.0.1", 0), Handler)
    address = server.address
    server.server_close()
    with pytest.raises(NotConnected):
        await post(address, ["x"], {}, 5)
