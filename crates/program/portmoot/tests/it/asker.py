"""A server on stdio, 2025-11-25: it tells its environment, asks for a form, and asks to open an address."""

import json
import os
import sys


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def say(request, text):
    send({"id": request, "result": {"content": [{"type": "text", "text": text}]}})


def ask(params):
    send({"id": "q", "method": "elicitation/create", "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q":
            return json.dumps(message.get("result", message.get("error")), sort_keys=True)


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "green"},
    },
    "required": ["name", "size"],
}

for line in sys.stdin:
    message = json.loads(line)
    request, method = message.get("id"), message.get("method")
    if method == "initialize":
        info = {"name": "asker", "version": "1"}
        version = message["params"]["protocolVersion"]
        send({"id": request, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        names = ["form", "link", "env", "die"]
        send({"id": request, "result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}})
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "form":
            say(request, ask({"message": "Who are you?", "requestedSchema": FORM}))
        elif name == "link":
            url = "https://example.com/" + "long/" * 40 + "?state=end"
            say(request, ask({"mode": "url", "message": "Sign in", "url": url, "elicitationId": "e1"}))
        elif name == "env":
            say(request, ",".join(sorted(os.environ)))
        else:
            sys.exit(3)
    elif request is not None:
        send({"id": request, "error": {"code": -32601, "message": "method not found"}})
