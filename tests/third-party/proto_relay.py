#!/usr/bin/env python3
"""A client of proto-mcp that calls tools with messages of their own, and writes bytes as no encoder does. It prints one JSON report.

    proto_relay.py PREFIX URL [TOKEN [find]]

The URL is ws:// or tcp://. With `find` it calls that tool alone.
"""

import json
import struct
import sys
import time
import traceback

from google.protobuf import json_format

from proto_peer import Peer, Socket, WebSocket, frame, mcp, packed, plain, text, typed

# `acme.tools.v1.FindRequest` with its fields in another order, and a number in three bytes.
MESSAGE = b"\x3a\x01b" + b"\x20\x85\x80\x00" + b"\x0a\x02ab"
TYPE = b"type.example/acme.tools.v1.FindRequest"


def error(answer):
    one = answer.error_response
    data = json_format.MessageToDict(one.data)
    return [one.code, [[v["field"], v.get("rule", "")] for v in data.get("violations", [])]]


def field(number, content, length=None):
    return bytes([number << 3 | 2]) + (length or bytes([len(content)])) + content


def request(name, more=b""):
    """A call: arguments before the name, a long length, fields that the contract does not have."""
    arguments = field(2, MESSAGE) + b"\x48\x01" + field(1, TYPE)
    before = field(2, arguments, bytes([len(arguments) | 0x80, 0x80, 0]))
    after = field(3, b"\x12\x01v\x0a\x01k") + field(15, b"xy") + b"\xc0\x0c\x07"
    return before, field(1, name), after, before + field(1, name) + more + after


def exchange(way, data):
    way.write(frame(data))
    return way.read(struct.unpack(">I", way.read(4))[0])


def listed(peer):
    tools, cursor = {}, ""
    while True:
        page = peer.ask(list_tools_request={"include_schemas": True, "cursor": cursor}).list_tools_response
        tools.update((tool.name, tool) for tool in page.tools)
        if not (cursor := page.next_cursor):
            return tools


def grown(peer, name):
    """Whether a tool that is there from now on has a schema."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if tool := listed(peer).get(name):
            return tool.HasField("inline_schema")
    return "it is not listed"


def main():
    prefix, report = sys.argv[1], {}
    if sys.argv[2].startswith("tcp://"):
        way = Socket(*sys.argv[2].removeprefix("tcp://").split(":"))
    else:
        way = WebSocket(sys.argv[2], token=sys.argv[3] if len(sys.argv) > 3 else "")
    try:
        peer = Peer(way)
        tools = listed(peer)
        find = tools[prefix + "find"]
        report["messages"] = [find.metadata["mcp.input_message"], find.metadata["mcp.output_message"]]
        report["own"] = {key: value for key, value in find.metadata.items() if not key.startswith("mcp.")}
        (file,) = find.inline_schema.file
        message = next(one for one in file.message_type if one.name == "FindRequest")
        report["numbers"] = {one.name: one.number for one in message.field}
        call = lambda name, arguments: peer.ask(call_tool_request={"name": prefix + name, "arguments": arguments})
        asked = {"query": "ab", "limit": 7, "filter": {"since": "9007199254740993"}}
        answer = call("find", typed(find, asked))
        data = next(one.data for one in answer.call_tool_response.success.content if one.HasField("data"))
        report["found"] = [text(answer), data.TypeName(), data.value.hex()]
        if len(sys.argv) > 4:
            print(json.dumps(report))
            return
        # Without a schema of its own, any object.
        report["open"] = tools[prefix + "echo"].metadata["mcp.input_message"]
        report["inline"] = [len(tools), sum(1 for tool in tools.values() if tool.HasField("inline_schema"))]
        report["plain"] = text(call("find", plain({"query": "ab", "limit": 7})))
        report["echo"] = json.loads(text(call("echo", plain({"q": 1.5})))[0])
        report["broken_rule"] = error(call("find", typed(find, {"query": "a"})))
        unknown = typed(find, asked)
        unknown.value += b"\xf8\x01\x01"
        report["unknown_field"] = error(call("find", unknown))
        report["wrong_message"] = error(call("find", packed(mcp.ReadResourceRequest(uri="x"))))
        refused = call("refuse", plain({})).error_response
        report["refused"] = [refused.code, refused.message]
        failed = call("fail", plain({})).call_tool_response.error
        report["failed"] = [failed.code, failed.message]
        read = lambda uri: peer.ask(read_resource_request={"uri": uri}).read_resource_response.contents[0]
        report["blob"] = read("file:///blob").blob.hex()
        resources = peer.ask(list_resources_request={}).list_resources_response.resources
        report["uris"] = [[one.uri, read(one.uri).uri] for one in resources]

        report["sent"], report["answers"] = [], []
        for secret in [b"", field(3, field(1, b"token") + field(2, b"do not pass"))]:
            before, _, after, whole = request((prefix + "raw").encode(), secret)
            answer = exchange(way, field(6, whole, bytes([len(whole) & 0x7F | 0x80, 0x80 | len(whole) >> 7, 0])) + b"\x08\xb2\x04")
            report["sent"].append((before + field(1, b"raw") + after).hex())
            report["answers"].append(answer.hex())
        call("grow", plain({}))
        report["grown"] = grown(peer, prefix + "grown")
    except Exception:
        report["error"] = traceback.format_exc()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
