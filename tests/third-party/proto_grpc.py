#!/usr/bin/env python3
"""The tour of `proto_client.py` over gRPC, and what is particular to it. Prints one JSON report.

    proto_grpc.py ADDRESS PREFIX [--ca FILE] [--cert FILE --key FILE] [--token TOKEN] [--call-token TOKEN] [--timeout SECONDS]
        [--traceparent VALUE] [--tracestate VALUE] [--tour] [--call TOOL TEXT [--times N]] [--cancel TOOL]

`--call` makes nothing but these calls, and `--cancel` one, which it cancels once a line comes in.
"""

import argparse
import importlib
import json
import pathlib
import sys
import traceback

import grpc
from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, json_format, message_factory  # noqa: F401

import proto_client
from proto_peer import mcp, plain, text

stubs = importlib.import_module("buf.mcp.v1.mcp_pb2_grpc")


class Calls:
    """The service, with the messages of a framed connection."""

    def __init__(self, channel, metadata=()):
        self.service = stubs.MCPServiceStub(channel)
        self.metadata = metadata
        self.statuses = []

    def ask(self, timeout=30, **payload):
        (name, message), = payload.items()
        asked = mcp.MCPMessage(**payload)
        method = "".join(word.capitalize() for word in name.removesuffix("_request").split("_"))
        try:
            answer = getattr(self.service, method)(getattr(asked, name), timeout=timeout, metadata=self.metadata)
        except grpc.RpcError as error:
            self.statuses.append(error.code().name)
            return mcp.MCPMessage(error_response=details(error))
        return mcp.MCPMessage(**{name.replace("request", "response"): answer})


def status_message():
    """`google.rpc.Status`, which no package here brings along."""
    file = descriptor_pb2.FileDescriptorProto(name="status.proto", package="google.rpc", syntax="proto3")
    file.dependency.append("google/protobuf/any.proto")
    message = file.message_type.add(name="Status")
    field = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="code", number=1, label=field.LABEL_OPTIONAL, type=field.TYPE_INT32)
    message.field.add(name="message", number=2, label=field.LABEL_OPTIONAL, type=field.TYPE_STRING)
    details = message.field.add(name="details", number=3, label=field.LABEL_REPEATED, type=field.TYPE_MESSAGE)
    details.type_name = ".google.protobuf.Any"
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("google.rpc.Status"))


Status = status_message()


def details(error):
    """The contract's error in the details of a status."""
    raw = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
    one = mcp.ErrorResponse(message=error.details())
    if raw:
        status = Status.FromString(raw)
        assert status.code == error.code().value[0] and status.message == error.details(), status
        assert status.details[0].Unpack(one), status
    return one


def refused(calls, report):
    """Statuses, one for each way to be refused."""
    codes = {}

    def one(name, **payload):
        before = len(calls.statuses)
        answer = calls.ask(**payload)
        codes[name] = [calls.statuses[-1] if len(calls.statuses) > before else "OK", answer.error_response.code]

    prefix = report["prefix"]
    one("version", initialize_request={"protocol_version": "2.0.0"})
    one("tool", call_tool_request={"name": prefix + "no_such_tool", "arguments": plain({})})
    one("type", call_tool_request={"name": prefix + "echo", "arguments": plain({"text": 5})})
    one("rule", call_tool_request={"name": prefix + "echo", "arguments": plain({})})
    one("resource", read_resource_request={"uri": "test://none"})
    one("cursor", list_tools_request={"cursor": "none"})
    one("unnamed", call_tool_request={})
    report["codes"] = codes
    report["deadline"] = deadline(calls, prefix)


def deadline(calls, prefix):
    try:
        waits = mcp.CallToolRequest(name=prefix + "slow", arguments=plain({"ms": 20000}))
        calls.service.CallTool(waits, timeout=0.3, metadata=calls.metadata)
    except grpc.RpcError as error:
        return error.code().name


def cancelled_by_line(calls, tool):
    """The status of a call that is cancelled once a line comes in."""
    call = calls.service.CallTool.future(mcp.CallToolRequest(name=tool, arguments=plain({})), metadata=calls.metadata)
    sys.stdin.readline()
    call.cancel()
    return call.code().name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("prefix")
    for name in ("--ca", "--cert", "--key", "--token", "--traceparent", "--tracestate"):
        parser.add_argument(name)
    parser.add_argument("--call-token")
    parser.add_argument("--timeout", type=float, default=30)
    parser.add_argument("--tour", action="store_true")
    parser.add_argument("--call", nargs=2)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--cancel")
    given = parser.parse_args()
    read = lambda name: pathlib.Path(name).read_bytes() if name else None
    if given.ca:
        credentials = grpc.ssl_channel_credentials(read(given.ca), read(given.key), read(given.cert))
        channel = grpc.secure_channel(given.address, credentials)
    else:
        channel = grpc.insecure_channel(given.address)
    metadata = [("authorization", f"Bearer {given.token}")] if given.token else []
    metadata += [(name, value) for name in ("traceparent", "tracestate") if (value := getattr(given, name))]
    calls = Calls(channel, metadata)
    report = {"prefix": given.prefix}
    try:
        if given.call or given.cancel:
            if given.call:
                done = proto_client.answers_of(calls, *given.call, given.times, lambda: calls.statuses[-1])
            else:
                done = cancelled_by_line(calls, given.cancel)
            print(json.dumps({"answers" if given.call else "cancelled": done}))
            return
        answer = calls.ask(initialize_request={"protocol_version": "1.0.0", "capabilities": {"experimental": {"mcp.list_changed": True}}})
        if answer.WhichOneof("payload") == "error_response":
            report["refused"] = [calls.statuses[-1], answer.error_response.message]
        else:
            hello = answer.initialize_response
            report["version"] = hello.protocol_version
            report["list_changed"] = hello.capabilities.tools.supports_list_changed
            report["references"] = hello.capabilities.supports_bsr_refs
            called = {"name": given.prefix + "echo", "arguments": plain({"text": "hello"})}
            if given.call_token:
                called["metadata"] = {"authorization": f"Bearer {given.call_token}"}
            said = calls.ask(call_tool_request=called, timeout=given.timeout)
            report["echo"] = calls.statuses[-1] if said.WhichOneof("payload") == "error_response" else text(said)
        if given.tour:
            tools = proto_client.listed(calls, report)
            proto_client.calls(calls, report, given.prefix, tools)
            proto_client.reads(calls, report)
            refused(calls, report)
    except Exception:
        report["error"] = traceback.format_exc()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
