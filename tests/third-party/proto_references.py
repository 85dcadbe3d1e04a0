#!/usr/bin/env python3
"""A client that wants schemas by reference, and asks the registry of the reference for them. It prints one JSON report.

    proto_references.py --tool TOOL --arguments JSON (--ws URL | --tcp HOST:PORT | --grpc HOST:PORT | --pipe COMMAND...)
        [--ca FILE [--cert FILE --key FILE]] [--token TOKEN]
"""

import argparse
import json
import pathlib
import ssl
import traceback
import urllib.request

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import grpc

from proto_grpc import Calls
from proto_peer import Peer, Pipe, Socket, WebSocket, text, typed_by

parser = argparse.ArgumentParser()
for option in ("--tool", "--arguments", "--ws", "--tcp", "--grpc", "--ca", "--cert", "--key", "--token"):
    parser.add_argument(option, default="")
parser.add_argument("--pipe", nargs=argparse.REMAINDER)
options = parser.parse_args()


def messages():
    """Request and response of `buf.reflect.v1beta1.FileDescriptorSetService/GetFileDescriptorSet`, as its documentation has them."""
    file = descriptor_pb2.FileDescriptorProto(name="reflect.proto", package="reflect", syntax="proto3")
    file.dependency.append("google/protobuf/descriptor.proto")
    one, many = 1, 3
    for name, fields in {
        "Ask": [("module", 9, one), ("version", 9, one), ("symbols", 9, many)],
        "Answer": [("file_descriptor_set", 11, one), ("version", 9, one)],
    }.items():
        message = file.message_type.add(name=name)
        for number, (field, kind, label) in enumerate(fields, 1):
            added = message.field.add(name=field, number=number, type=kind, label=label)
            if kind == 11:
                added.type_name = ".google.protobuf.FileDescriptorSet"
    pool = descriptor_pool.Default()
    pool.Add(file)
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(f"reflect.{name}")) for name in ("Ask", "Answer")]


Ask, Answer = messages()


def resolve(reference):
    """The files that a reference `host/owner/module/symbol:version` stands for, and its symbol."""
    module, symbol = reference.rsplit("/", 1)
    symbol, version = symbol.split(":")
    ask = Ask(module=module, version=version, symbols=[symbol])
    scheme, host = "https" if options.ca else "http", module.split("/")[0]
    request = urllib.request.Request(
        f"{scheme}://{host}/buf.reflect.v1beta1.FileDescriptorSetService/GetFileDescriptorSet",
        data=ask.SerializeToString(),
        headers={"content-type": "application/proto"},
    )
    if options.token:
        request.add_header("authorization", f"Bearer {options.token}")
    context = ssl.create_default_context(cafile=options.ca) if options.ca else None
    if options.cert:
        context.load_cert_chain(options.cert, options.key)
    with urllib.request.urlopen(request, context=context) as response:
        answer = Answer.FromString(response.read())
    assert answer.version == version, answer.version
    return answer.file_descriptor_set.file, symbol


def called(references):
    """Calls over gRPC, which have no session: each says whether references are read."""
    metadata = [("authorization", f"Bearer {options.token}")] if options.token else []
    metadata += [("mcp-supports-bsr-refs", "true")] if references else []
    if not options.ca:
        return Calls(grpc.insecure_channel(options.grpc), metadata)
    read = lambda name: pathlib.Path(name).read_bytes() if name else None
    credentials = grpc.ssl_channel_credentials(read(options.ca), read(options.key), read(options.cert))
    return Calls(grpc.secure_channel(options.grpc, credentials), metadata)


def connected(references):
    shown = {"ca": options.ca, "cert": options.cert, "key": options.key}
    if options.grpc:
        peer = called(references)
    elif options.pipe:
        peer = Peer(Pipe(options.pipe))
    elif options.ws:
        peer = Peer(WebSocket(options.ws, token=options.token, **shown))
    else:
        peer = Peer(Socket(*options.tcp.rsplit(":", 1), **shown))
    capabilities = {"supports_bsr_refs": references, "encodings": ["protobuf"]}
    metadata = {"authorization": f"Bearer {options.token}"} if options.token else {}
    answer = peer.ask(initialize_request={"protocol_version": "1.0.0", "capabilities": capabilities, "metadata": metadata})
    return peer, answer.initialize_response.capabilities.supports_bsr_refs


def listed(peer, **request):
    tools, cursor = [], ""
    while True:
        page = peer.ask(list_tools_request={"cursor": cursor, **request}).list_tools_response
        tools, cursor = [*tools, *page.tools], page.next_cursor
        if not cursor:
            return {tool.name: tool for tool in tools}


def main(report):
    peer, report["supports"] = connected(True)
    tools = listed(peer)
    report["references"] = {name: tool.bsr_ref for name, tool in tools.items() if tool.HasField("bsr_ref")}
    report["inline"] = {name: len(tool.inline_schema.file) for name, tool in tools.items() if tool.HasField("inline_schema")}
    report["said"] = sum("mcp.bsr_ref" in tool.metadata for tool in tools.values())
    asked = listed(peer, include_schemas=True)
    report["moved"] = all(asked[name].metadata["mcp.bsr_ref"] == one for name, one in report["references"].items())
    report["asked"] = sum(tool.HasField("inline_schema") for tool in asked.values())
    reference = report["references"].get(options.tool)
    if reference:
        for name, only in {"exact": reference, "any": reference.rsplit(":", 1)[0], "label": reference.rsplit(":", 1)[0] + ":v1", "other": reference[:-1] + "x"}.items():
            report[name] = list(listed(peer, bsr_refs=[only]))
        files, symbol = resolve(reference)
        report["files"] = [file.name for file in files]
        arguments = typed_by(files, symbol, json.loads(options.arguments))
        report["answer"] = text(peer.ask(call_tool_request={"name": options.tool, "arguments": arguments}))
        # What is inline is what the registry has: the same messages with the same rules.
        messages = lambda file: [message.SerializeToString(deterministic=True) for message in file.message_type]
        (own,) = asked[options.tool].inline_schema.file
        (there,) = [file for file in files if file.name == own.name]
        report["same"] = messages(own) == messages(there) != []
    peer, report["unasked"] = connected(False)
    report["undeclared"] = sum(tool.HasField("bsr_ref") for tool in listed(peer).values())


report = {}
try:
    main(report)
except Exception:
    report["error"] = traceback.format_exc()
print(json.dumps(report))
