"""Requests to the gateway's REST API: for what no envelope and no tool of the gateway may do."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import anyio
import anyio.to_thread

from ._connection import FRAME_BYTES_MAX, Address
from .errors import Answered, CallTimeout, Lost, NotConnected, Refused, SystemError

_UNREADABLE = -32603


async def post(address: Address, path: Sequence[str], body: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Posts to a path below ``/api/v1``, and returns the answer.

    Raises:
        Refused: the gateway refuses it.
        NotConnected, Lost, CallTimeout: it cannot be reached, or gave no answer.
    """
    status, text = await anyio.to_thread.run_sync(_exchange, address, path, body, timeout, abandon_on_cancel=True)
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Answered(_UNREADABLE, f"the answer with status {status} cannot be read")
    if 200 <= status < 300:
        return answer
    message, hint = str(answer.get("message", "")), answer.get("hint")
    raise Refused(SystemError(str(answer.get("code", "")), f"{message} ({hint})" if hint else message))


def _exchange(address: Address, path: Sequence[str], body: Mapping[str, Any], timeout: float) -> tuple[int, bytes]:
    """One request on a connection of its own; blocks."""
    base = address.api()
    host = base.hostname or ""
    if base.scheme == "wss":
        tls = address.tls or ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, base.port, timeout=timeout, context=tls)
    else:
        connection = http.client.HTTPConnection(host, base.port, timeout=timeout)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise NotConnected(f"the gateway cannot be reached: {error}") from None
        headers = {"Content-Type": "application/json"}
        if address.token is not None:
            headers["Authorization"] = f"Bearer {address.token}"
        target = base.path + "".join("/" + quote(part, safe="-._") for part in path)
        connection.request("POST", target, json.dumps(body).encode(), headers)
        response = connection.getresponse()
        return response.status, response.read(FRAME_BYTES_MAX)
    except TimeoutError:
        raise CallTimeout("no answer in time; the call may still have been made") from None
    except (OSError, http.client.HTTPException) as error:
        raise Lost(f"the connection broke before the answer: {error}") from None
    finally:
        connection.close()
