#!/usr/bin/env python3
"""Asks a gateway for every error that proto-mcp has a code for, over one wire. It prints one JSON report.

    proto_codes.py --pipe COMMAND... | --tcp HOST:PORT | --ws URL | --grpc HOST:PORT

The gateway has the fixture as `s`, whose tool `slow` times out, and `proto_server.py` as `p`.
"""

import json
import sys
import traceback

import grpc

from proto_grpc import Calls, details
from proto_peer import Peer, Pipe, Socket, WebSocket, mcp, packed, plain, text

LIMIT = 4 * 1024 * 1024


def place(answer):
    """Where an answer has its error, and the code."""
    which = answer.WhichOneof("payload")
    if which == "error_response":
        return ["request", answer.error_response.code]
    error = answer.call_tool_response.error
    return ["call", error.code] if answer.call_tool_response.HasField("error") else [which, 0]


def asked(ask, report):
    """Requests that every wire carries."""
    call = lambda name, arguments: ask(call_tool_request={"name": name, "arguments": arguments})
    report["version"] = ask(initialize_request={"protocol_version": "2.0.0"})
    report["unknown_tool"] = call("p_none", plain({}))
    # The schema of this tool is at a registry that the gateway may not ask.
    report["unresolved"] = call("p_distant", packed(mcp.ReadResourceRequest(uri="x")))
    report["rule"] = call("p_find", plain({"query": "a"}))
    report["type"] = call("p_find", plain({"query": 5}))
    report["timeout"] = call("s_slow", plain({"ms": 20000}))
    report["failed"] = call("p_fail", plain({}))
    report["resource"] = ask(read_resource_request={"uri": "test://none"})


def framed(way):
    """The errors over a connection of frames."""
    report, peer = {}, Peer(way)
    asked(lambda **payload: place(peer.ask(**payload)), report)
    report["struct"] = text(peer.ask(call_tool_request={"name": "p_distant", "arguments": plain({})}))
    for what, data in [("garbage", b"\xff\xff\xff"), ("payload", b"\x08\x07\x6a\x00")]:
        peer.send(data)
        report[what] = place(peer.receive())
    way.write(b"\x0a" * (LIMIT + 1) if isinstance(way, WebSocket) else (LIMIT + 1).to_bytes(4, "big"))
    report["long"] = place(peer.receive())
    return report


def over_grpc(address):
    """The errors over gRPC, each with its status."""
    report, channel = {}, grpc.insecure_channel(address)
    calls = Calls(channel)

    def ask(**payload):
        before = len(calls.statuses)
        answer = calls.ask(**payload)
        return place(answer) + [calls.statuses[-1] if len(calls.statuses) > before else "OK"]

    def raw(method, data):
        try:
            channel.unary_unary(f"/buf.mcp.v1.MCPService/{method}")(data)
        except grpc.RpcError as error:
            return ["request", details(error).code, error.code().name]

    asked(ask, report)
    report["struct"] = text(calls.ask(call_tool_request={"name": "p_distant", "arguments": plain({})}))
    report["garbage"] = raw("CallTool", b"\xff\xff\xff")
    report["payload"] = raw("None", b"")
    report["long"] = raw("CallTool", b"\x0a" + b"\x80\x80\x80\x02" + bytes(LIMIT))
    return report


def main():
    option, *words = sys.argv[1:]
    try:
        if option == "--grpc":
            report = over_grpc(words[0])
        elif option == "--pipe":
            report = framed(Pipe(words))
        elif option == "--tcp":
            report = framed(Socket(*words[0].rsplit(":", 1)))
        else:
            report = framed(WebSocket(words[0]))
    except Exception:
        report = {"error": traceback.format_exc()}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
