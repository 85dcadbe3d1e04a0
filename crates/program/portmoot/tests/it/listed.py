"""A server on stdio, 2025-11-25, whose tools are what a file lists. A call of `change` announces that the list has changed; each
call of another tool is written down beside the file. `mirror` gives its arguments as its structured result, `forge`
as the `_meta` of its result; `refuse` says that it failed."""

import json
import os
import sys
import threading
import time


# As long as this file exists the list is not given.
HOLD = sys.argv[1] + ".hold"


def send(message):
    # In one write: two threads may send.
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def list_tools(request):
    send({"id": request, "result": {"tools": json.load(open(sys.argv[1]))}})


def list_late(request):
    while os.path.exists(HOLD):
        time.sleep(0.02)
    list_tools(request)


for line in sys.stdin:
    message = json.loads(line)
    request, method = message.get("id"), message.get("method")
    if method == "initialize":
        info, able = {"name": "listed", "version": "1"}, {"tools": {"listChanged": True}}
        send({"id": request, "result": {"protocolVersion": "2025-11-25", "capabilities": able, "serverInfo": info}})
    elif method == "tools/list":
        if os.path.exists(HOLD):
            threading.Thread(target=list_late, args=(request,), daemon=True).start()
        else:
            list_tools(request)
    elif method == "tools/call":
        name = message["params"]["name"]
        if name == "change":
            send({"method": "notifications/tools/list_changed"})
        else:
            open(sys.argv[1] + ".calls", "a").write(name + "\n")
        text = name + " of the server"
        result = {"content": [{"type": "text", "text": text}]}
        if name == "mirror":
            result["structuredContent"] = message["params"].get("arguments")
        if name == "refuse":
            result["isError"] = True
        if name == "forge":
            result["_meta"] = message["params"].get("arguments")
        send({"id": request, "result": result})
    elif request is not None:
        send({"id": request, "error": {"code": -32601, "message": "unknown"}})
