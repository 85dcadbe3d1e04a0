"""A small MCP server for the tests of server supervision: newline-delimited JSON on stdin and stdout.

Usage: echo.py legacy|modern|both [silent-probe] [ends-at-probe] [spoilt-by-probe] [closes-stdout-at-probe]
[closes-stdin-at-probe] [hangs-at-probe] [initializes-at-probe] [takes-probe-for-initialize] [slow-start SECONDS] [writes-slowly SECONDS] [locks FILE] [waits-for FILE] [hang] [flood] [fail-once FILE] [lists-modern]
"""
import fcntl
import json
import os
import subprocess
import sys
import threading
import time

ERA = sys.argv[1]
FLAGS = sys.argv[2:]
LOCK = threading.Lock()
ANSWERS = {}
CANCELLED = []
SUBSCRIBED = []
INITS = 0
LEVEL = None
CHANGED = False
PROBED = False
VERSIONS = {"modern": ["2026-07-28"], "both": ["2025-11-25", "2026-07-28"]}
if "lists-modern" in FLAGS:
    VERSIONS["both"] = VERSIONS["modern"]
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "logging": {},
}
NAMES = ["echo", "hang", "crash", "ask", "progress", "garbage", "huge", "report", "change", "child", "log", "deaf"]


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def reply(id, result, modern):
    if modern:
        result = {"resultType": "complete", **result}
    send({"jsonrpc": "2.0", "id": id, "result": result})


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def tools():
    names = NAMES + (["late"] if CHANGED else [])
    listed = [{"name": n, "inputSchema": {"type": "object"}, "x-kept": 1} for n in names]
    return listed + [{"name": "broken", "inputSchema": {"type": "object", "properties": {"a": {"type": "strin"}}}}]


def call(id, params, modern):
    global CHANGED
    name, arguments = params["name"], params.get("arguments", {})
    token = params.get("_meta", {}).get("progressToken")
    if name == "hang":
        return
    if name == "crash":
        os._exit(3)
    if name == "deaf":
        reply(id, text("deaf"), modern)
        os.close(0)
        time.sleep(1)
        os._exit(0)
    if name == "ask":
        key = "q%s" % id
        event = threading.Event()
        ANSWERS[key] = [event, None]
        send({"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": {"message": "name?"}})
        event.wait(10)
        return reply(id, text(json.dumps(ANSWERS[key][1])), modern)
    if name == "progress":
        for step in range(arguments.get("steps", 2)):
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": token, "progress": step + 1}})
            time.sleep(arguments.get("wait", 0))
    if name == "garbage":
        with LOCK:
            sys.stdout.write("this is not JSON\n\n{\"half\": \n[1,2\n")
            for _ in range(arguments.get("lines", 0)):
                sys.stdout.write("x" * 200 + "\n")
            sys.stdout.flush()
    if name == "huge":
        return reply(id, text("x" * arguments["bytes"]), modern)
    if name == "change":
        CHANGED = True
        for _ in range(20):
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if name == "child":
        child = subprocess.Popen(["sleep", "300"])
        return reply(id, text(str(child.pid)), modern)
    if name == "log":
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello"}})
    if name == "report":
        return reply(id, text(json.dumps({
            "env": dict(os.environ), "inits": INITS, "pid": os.getpid(), "cancelled": CANCELLED,
            "level": LEVEL, "subscribed": SUBSCRIBED, "params": params})), modern)
    reply(id, {**text(json.dumps(arguments)), "x-number": 12345678901234567890}, modern)


def serve(message):
    global INITS, LEVEL, PROBED
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    if method is None:
        event = ANSWERS.get(id)
        if event:
            event[1] = message.get("result", message.get("error"))
            event[0].set()
    elif method == "server/discover" and ERA != "legacy":
        reply(id, {"supportedVersions": VERSIONS[ERA], "capabilities": CAPABILITIES, "ttlMs": 0,
                   "cacheScope": "private"}, True)
    elif method == "server/discover" and "silent-probe" in FLAGS:
        pass
    elif method == "server/discover" and "ends-at-probe" in FLAGS:
        os._exit(7)
    elif method == "server/discover" and "spoilt-by-probe" in FLAGS:
        PROBED = True
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "method not found"}})
    elif method == "server/discover" and "closes-stdout-at-probe" in FLAGS:
        os.close(1)
    elif method == "server/discover" and "closes-stdin-at-probe" in FLAGS:
        os.close(0)
        time.sleep(60)
    elif method == "server/discover" and "hangs-at-probe" in FLAGS:
        time.sleep(60)
    elif method == "server/discover" and "initializes-at-probe" in FLAGS:
        PROBED = True
        send({"jsonrpc": "2.0", "id": "own", "method": "initialize", "params": {}})
    elif method == "server/discover" and "takes-probe-for-initialize" in FLAGS:
        PROBED = True
        reply(id, {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": {}}, False)
    elif method == "initialize" and PROBED:
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "already started"}})
    elif method == "initialize" and ERA != "modern":
        INITS += 1
        reply(id, {"protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES,
                   "serverInfo": {"name": "echo", "version": "1"}}, False)
    elif method == "notifications/cancelled":
        CANCELLED.append(params["requestId"])
    elif method == "tools/list":
        cursor = int(params.get("cursor", "0"))
        page = {"tools": tools()[cursor:cursor + 4]}
        if cursor + 4 < len(tools()):
            page["nextCursor"] = str(cursor + 4)
        reply(id, page, modern)
    elif method == "resources/list":
        reply(id, {"resources": [{"uri": "test://a", "name": "a"}]}, modern)
    elif method == "prompts/list":
        reply(id, {"prompts": []}, modern)
    elif method == "resources/subscribe":
        SUBSCRIBED.append(params["uri"])
        reply(id, {}, modern)
    elif method == "logging/setLevel":
        LEVEL = params["level"]
        reply(id, {}, modern)
    elif method == "resources/unsubscribe":
        SUBSCRIBED.remove(params["uri"])
        reply(id, {}, modern)
    elif method == "subscriptions/listen":
        SUBSCRIBED.append(params["notifications"])
        send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
              "params": {"notifications": params["notifications"],
                         "_meta": {"io.modelcontextprotocol/subscriptionId": id}}})
    elif method == "tasks/result":
        pass  # its task takes as long as it takes
    elif method == "tools/call":
        threading.Thread(target=call, args=(id, params, modern), daemon=True).start()
    elif id is not None:
        send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})


def flood():
    while True:
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 300}})
        with LOCK:
            sys.stdout.write("garbage\n" * 50)


if "fail-once" in FLAGS and os.path.exists(FLAGS[FLAGS.index("fail-once") + 1]):
    os.remove(FLAGS[FLAGS.index("fail-once") + 1])
    sys.exit(4)
if "locks" in FLAGS:
    # As a server does that works on one file: a second process of it ends.
    lock = open(FLAGS[FLAGS.index("locks") + 1], "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("the file is locked by another process", file=sys.stderr)
        sys.exit(5)
if "flood" in FLAGS:
    threading.Thread(target=flood, daemon=True).start()
print("echo server starts", file=sys.stderr)
if "waits-for" in FLAGS:
    while not os.path.exists(FLAGS[FLAGS.index("waits-for") + 1]):
        time.sleep(0.02)
if "slow-start" in FLAGS:
    time.sleep(float(FLAGS[FLAGS.index("slow-start") + 1]))
if "writes-slowly" in FLAGS:
    for step in range(int(float(FLAGS[FLAGS.index("writes-slowly") + 1]) * 20)):
        print("installing, step", step, file=sys.stderr, flush=True)
        time.sleep(0.05)
for line in sys.stdin:
    if "hang" not in FLAGS:
        serve(json.loads(line))
