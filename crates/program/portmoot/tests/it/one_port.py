"""A server on stdio, 2025-11-25, of which one process can run at a time: it listens on a port, and exits if that is taken. `port` tells
its process; `form` asks for a name if the client answers forms, else it says that no client can be asked."""

import json
import os
import socket
import sys


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def ask():
    send({"id": "q", "method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": FORM}})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "q":
            return json.dumps(message.get("result", message.get("error")), sort_keys=True)


FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    listener.bind(("127.0.0.1", int(sys.argv[1])))
except OSError as error:
    sys.exit(f"port {sys.argv[1]}: {error.strerror}")
listener.listen()
asks = False

for line in sys.stdin:
    message = json.loads(line)
    request, method = message.get("id"), message.get("method")
    if method == "initialize":
        asks = "elicitation" in message["params"]["capabilities"]
        info, able = {"name": "one-port", "version": "1"}, {"tools": {}}
        send({"id": request, "result": {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ["port", "form"]]
        send({"id": request, "result": {"tools": tools}})
    elif method == "tools/call":
        text = str(os.getpid())
        if message["params"]["name"] == "form":
            text = ask() if asks else "no client can be asked"
        send({"id": request, "result": {"content": [{"type": "text", "text": text}]}})
    elif request is not None:
        send({"id": request, "error": {"code": -32601, "message": "method not found"}})
