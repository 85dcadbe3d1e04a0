#!/usr/bin/env python3
"""A client that knows proto-mcp's contract alone makes a tour of the fixture, and prints one JSON report.

    proto_client.py --pipe COMMAND...
    proto_client.py --tcp HOST:PORT [--ca FILE] [--cert FILE --key FILE] [--token TOKEN]
    proto_client.py [--call TOOL TEXT] --ws URL [--ca FILE] [--cert FILE --key FILE] [--token TOKEN]

With `--times N` after these, `--call` makes its call so many times on one connection. `--typed TOOL JSON` in place of `--call` makes
it with the tool's own message, `--plain TOOL JSON` with any arguments in a Struct. `--metadata JSON` gives the call metadata.
`--read URI -` in place of `--call` reads a resource. What else is given with `--ws`, such as `--traceparent VALUE`, is a header of the upgrade.
"""

import json
import sys
import traceback

from google.protobuf import json_format

import proto_peer
from proto_peer import Peer, Pipe, Socket, WebSocket, mcp, packed, plain, text, typed


def error(answer):
    """Code, message, and the code of the data."""
    one = answer.error_response
    return [one.code, one.message, json_format.MessageToDict(one.data).get("code")]


def initialize(peer, report):
    capabilities = {"supports_bsr_refs": True, "encodings": ["protobuf"], "experimental": {"mcp.list_changed": True}}
    refused = peer.ask(initialize_request={"protocol_version": "2.0.0", "metadata": initialize.metadata})
    report["other_version"] = error(refused)
    answer = peer.ask(initialize_request={"protocol_version": "1.0.0", "capabilities": capabilities}).initialize_response
    report["version"] = answer.protocol_version
    report["list_changed"] = answer.capabilities.tools.supports_list_changed
    report["prompts"] = answer.capabilities.HasField("prompts")
    peer.send(b"")
    peer.send(mcp.MCPMessage(id=900))
    pong = peer.receive()
    report["ping"] = [pong.id, pong.WhichOneof("payload")]


initialize.metadata = {}


def listed(peer, report):
    tools, cursor, pages = {}, "", 0
    while True:
        page = peer.ask(list_tools_request={"include_schemas": True, "cursor": cursor}).list_tools_response
        tools.update((tool.name, tool) for tool in page.tools)
        pages, cursor = pages + 1, page.next_cursor
        if not cursor:
            break
    report["tools"] = sorted(tools)
    report["schemas"] = sum(1 for tool in tools.values() if tool.HasField("inline_schema"))
    resources = peer.ask(list_resources_request={}).list_resources_response.resources
    report["resources"] = sorted(one.uri for one in resources)
    return tools


def calls(peer, report, prefix, tools):
    call = lambda name, arguments=None: peer.ask(call_tool_request={"name": prefix + name, "arguments": arguments})
    report["plain"] = text(call("echo", plain({"text": "hello"})))
    report["typed"] = text(call("echo", typed(tools[prefix + "echo"], {"text": "grüße"})))
    added = call("add", typed(tools[prefix + "add"], {"a": 2, "b": 3})).call_tool_response.success
    report["structured"] = [one.data.TypeName() for one in added.content if one.HasField("data")]
    failed = call("test_error_handling").call_tool_response.success
    report["is_error"] = failed.is_error
    blocks = call("test_multiple_content_types").call_tool_response.success.content
    report["blocks"] = [[one.WhichOneof("content"), one.mime_type] for one in blocks]
    report["unknown_tool"] = error(call("no_such_tool", plain({})))
    report["wrong_message"] = error(call("echo", packed(mcp.ReadResourceRequest(uri="x"))))
    report["broken_rule"] = error(call("echo", plain({})))
    report["wrong_type"] = error(call("echo", plain({"text": 5})))


def reads(peer, report):
    read = lambda uri: peer.ask(read_resource_request={"uri": uri})
    report["text"] = [one.text for one in read("test://static-text").read_resource_response.contents]
    blob = read("test://static-binary").read_resource_response.contents[0]
    report["blob"] = [blob.mime_type, blob.blob[:4].hex()]
    report["unknown_resource"] = error(read("test://none"))


def bad_input(peer, report, prefix):
    waits = mcp.CallToolRequest(name=prefix + "slow", arguments=plain({"ms": 300}))
    for _ in range(2):
        peer.send(mcp.MCPMessage(id=800, call_tool_request=waits))
    answers = [peer.receive() for _ in range(2)]
    report["same_id"] = [[one.id, one.error_response.code] for one in answers]
    peer.send(b"\xff\xff\xff")
    report["garbage"] = [peer.receive().id, -32700]
    peer.send(b"\x08\x07\x6a\x00")
    unknown = peer.receive()
    report["unknown_payload"] = [unknown.id, unknown.error_response.code]
    # An answer is no request.
    report["answer"] = error(peer.ask(error_response={"code": 1}))
    # A frame says how long it will be; a WebSocket's message is as long as it is.
    peer.way.write(b"\x02\x00\x00\x01" if not isinstance(peer.way, WebSocket) else b"\x0a" * (4 * 1024 * 1024 + 1))
    report["too_long"] = [(last := peer.receive()).id, last.error_response.code]
    rest, status = peer.way.close()
    report["end"] = [len(rest), status]


def messages(way, again, report):
    """What only a WebSocket has: messages in parts, without their prefix, and of text."""
    ping = proto_peer.frame(mcp.MCPMessage(id=901))
    way.socket.send([ping[:2], ping[2:5], ping[5:]])
    way.socket.send(ping[4:])
    peer = Peer(way)
    report["in_parts"] = [peer.receive().id, peer.receive().id]
    other = again()
    other.socket.send("{}")
    report["text_message"] = other.close()[1]


def begin(peer):
    """The error with which the gateway refuses the connection."""
    began = peer.ask(initialize_request={"protocol_version": "1.0.0", "metadata": initialize.metadata})
    return error(began) if began.HasField("error_response") else None


def outcome(answer, status):
    """The texts of a call, those of a tool that failed, or status, code and data of the error."""
    one, said = answer.error_response, answer.call_tool_response
    if answer.WhichOneof("payload") == "error_response":
        return [status(), one.code, json_format.MessageToDict(one.data)]
    if said.HasField("error"):
        return {"error": [said.error.code, said.error.message]}
    return {"is_error": text(answer)} if said.success.is_error else text(answer)


def answers_of(peer, tool, words, times, status=lambda: None):
    """The outcomes of a call that is made so many times."""
    call = {"name": tool, "arguments": plain({"text": words})}
    return [outcome(peer.ask(call_tool_request=call), status) for _ in range(times)]


def one_call(peer, tool, words, kind, metadata):
    if refused := begin(peer):
        return refused
    if kind == "--read":
        answer = peer.ask(read_resource_request={"uri": tool})
        contents = answer.read_resource_response.contents
        return [one.text for one in contents] if contents else error(answer)
    if kind == "--typed":
        listed = peer.ask(list_tools_request={"include_schemas": True}).list_tools_response.tools
        arguments = typed(next(one for one in listed if one.name == tool), json.loads(words))
    else:
        arguments = plain(json.loads(words) if kind == "--plain" else {"text": words})
    answer = peer.ask(call_tool_request={"name": tool, "arguments": arguments, "metadata": metadata})
    return text(answer) if answer.HasField("call_tool_response") else error(answer)


def main():
    arguments = sys.argv[1:]
    prefix, call, kind = "", None, arguments[0]
    if kind in ("--call", "--typed", "--plain", "--read"):
        call, arguments = arguments[1:3], arguments[3:]
    if arguments[0] == "--prefix":
        prefix, arguments = arguments[1], arguments[2:]
    options = dict(zip((word.removeprefix("--") for word in arguments[2::2]), arguments[3::2]))
    times, metadata = int(options.pop("times", 0)), json.loads(options.pop("metadata", "{}"))
    if arguments[0] == "--pipe":
        options, way = {}, Pipe(arguments[1:])
    elif arguments[0] == "--tcp":
        token = options.pop("token", "")
        way = Socket(*arguments[1].rsplit(":", 1), **options)
        initialize.metadata = {"authorization": f"Bearer {token}"} if token else {}
    else:
        again = lambda: WebSocket(arguments[1], **options)
        way = again()
    report = {}
    try:
        peer = Peer(way)
        if call and times:
            report["answers"] = begin(peer) or answers_of(peer, *call, times)
            print(json.dumps(report))
            return
        if call:
            report["answer"] = one_call(peer, *call, kind, metadata)
            print(json.dumps(report))
            return
        initialize(peer, report)
        tools = listed(peer, report)
        calls(peer, report, prefix, tools)
        reads(peer, report)
        if isinstance(way, WebSocket):
            messages(way, again, report)
        bad_input(peer, report, prefix)
    except Exception:
        report["error"] = traceback.format_exc()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
