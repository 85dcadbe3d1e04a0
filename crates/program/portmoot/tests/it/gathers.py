"""A server on stdio, 2025-11-25: it answers the calls of its tools once all that it waits for are there, and then at once."""

import json
import sys

ALL = int(sys.argv[1])


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


waiting = []
for line in sys.stdin:
    message = json.loads(line)
    request, method = message.get("id"), message.get("method")
    if method == "initialize":
        info = {"name": "gathers", "version": "1"}
        version = message["params"]["protocolVersion"]
        send({"id": request, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ["left", "right"]]
        send({"id": request, "result": {"tools": tools}})
    elif method == "tools/call":
        waiting.append((request, message["params"]["name"]))
        if len(waiting) == ALL:
            for request, name in waiting:
                send({"id": request, "result": {"content": [{"type": "text", "text": name}]}})
            waiting = []
    elif request is not None:
        send({"id": request, "error": {"code": -32601, "message": "method not found"}})
