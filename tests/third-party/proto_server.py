"""A proto-mcp server on Google's protobuf runtime, from the contract file alone.

    proto_server.py CONTRACT stdio|tcp|ws|grpc [--version V] [--record FILE] [--json COMMAND...]

Over a socket it prints its address on the first line. It appends what it gets, in hexadecimal, to the file. The command gets
the pipe of a client that speaks JSON.
"""

import argparse
import asyncio
import importlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
from concurrent import futures

from google.protobuf import any_pb2, json_format, struct_pb2

parser = argparse.ArgumentParser()
parser.add_argument("contract", help="the folder of the contract")
parser.add_argument("way", choices=["stdio", "tcp", "ws", "grpc"])
parser.add_argument("--version", default="1.0.0")
parser.add_argument("--record")
parser.add_argument("--far", nargs=2, action="append", default=[], help="a tool, and where its schema is")
for file in ("--cert", "--key", "--ca"):
    parser.add_argument(file, help="over gRPC, which then asks clients for a certificate")
parser.add_argument("--json", nargs=argparse.REMAINDER, default=[])
options = parser.parse_args()

TOOLS = """
syntax = "proto3";
package acme.tools.v1;
import "buf/validate/validate.proto";

message FindRequest {
  string query = 1 [(buf.validate.field).string.min_len = 2];
  optional int32 limit = 4 [(buf.validate.field).int32 = { gte: 1, lte: 50 }];
  repeated string tags = 7;
  Filter filter = 9;
  message Filter {
    oneof by { string owner = 1; int64 since = 2; }
  }
}

message RuledRequest {
  option (buf.validate.message).cel = { id: "order", message: "low is above high", expression: "this.low <= this.high" };
  int64 low = 1;
  int64 high = 2;
  string name = 3 [(buf.validate.field).cel = { id: "begin", message: "begins with a", expression: "this.startsWith('a') || this == ''" }];
  map<string, int32> weights = 4 [(buf.validate.field).map = { keys: { string: { max_len: 4 } }, values: { int32: { gte: 0 } } }];
  Kind kind = 5 [(buf.validate.field).enum = { defined_only: true, not_in: [0] }];
  bytes raw = 6 [(buf.validate.field).bytes = { min_len: 2, max_len: 9 }];
  oneof by {
    option (buf.validate.oneof).required = true;
    string owner = 7;
    uint32 since = 8 [(buf.validate.field).uint32.gt = 10];
  }
  repeated Inner many = 9 [(buf.validate.field).repeated.max_items = 2];
  string free = 10 [(buf.validate.field) = { ignore: IGNORE_ALWAYS, string: { min_len: 5 } }];
  float ratio = 11 [(buf.validate.field) = { ignore: IGNORE_IF_ZERO_VALUE, float: { gt: 1.5 } }];
  message Inner {
    string id = 1 [(buf.validate.field).required = true];
    optional sint64 count = 2 [(buf.validate.field).sint64 = { lt: 0, gt: 5 }];
  }
  enum Kind { KIND_UNSPECIFIED = 0; KIND_ONE = 1; KIND_TWO = 2; }
}

message WebSearchRequest {
  string query = 1 [(buf.validate.field).string.min_len = 1];
  int32 max_results = 2 [(buf.validate.field).int32.gte = 1, (buf.validate.field).int32.lte = 100];
  DateRange date_range = 3;
}

message DateRange { string start = 1; string end = 2; }

message WebSearchResponse { repeated SearchResult results = 1; int32 total_count = 2; }

message SearchResult { string title = 1; string url = 2; string snippet = 3; string published_at = 4; }

message FindResponse {
  string query = 2;
  int64 count = 1;
  repeated string tags = 3;
  FindRequest.Filter filter = 5;
}
"""

stubs = tempfile.mkdtemp()
pathlib.Path(stubs, "acme").mkdir()
pathlib.Path(stubs, "acme/tools.proto").write_text(TOOLS)
rules = pathlib.Path(__file__).parents[2] / "crates/protocol/schema/proto"
compiler = [sys.executable, "-m", "grpc_tools.protoc", f"-I{options.contract}", f"-I{rules}", f"-I{stubs}"]
outputs = [f"--python_out={stubs}", f"--grpc_python_out={stubs}"]
files = ["buf/mcp/v1/mcp.proto", "buf/validate/validate.proto", "acme/tools.proto"]
subprocess.run([*compiler, *outputs, *files], check=True)
sys.path.insert(0, stubs)
pb = importlib.import_module("buf.mcp.v1.mcp_pb2")
acme = importlib.import_module("acme.tools_pb2")

PAGE = 3
tools = ["echo", "find", "picture", "fail", "refuse", "rule", "grow", "raw", "broken", "distant", "ruled", "web_search", "die"]
far = dict(options.far)
tools += far
INPUTS = {"find": "Find", "raw": "Find", "broken": "Find", "ruled": "Ruled", "web_search": "WebSearch"}
# A payload with what no encoder writes: a long length, a field that the contract does not have before the others, a number in four bytes.
RAW = b"\x7a\x02xy" + b"\x0a\x8c\x80\x00" + (b"\x10\x80\x80\x00" + b"\x0a\x06\x0a\x04done") + b"\x1a\x06\x12\x01v\x0a\x01k"
RAW_ANSWER = b"\x3a" + bytes([len(RAW) | 0x80]) + b"\x00" + RAW


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.error = pb.ErrorResponse(code=code, message=message)


def initialize(request):
    if options.version == "refused":
        raise Refused(-33002, "unsupported protocol version")
    answer = pb.InitializeResponse(protocol_version=options.version, metadata={"name": "proto-fixture", "version": "1"})
    answer.capabilities.tools.supports_list_changed = True
    answer.capabilities.resources.supports_subscribe = False
    return answer


def list_tools(request):
    start = int(request.cursor or 0)
    answer = pb.ListToolsResponse()
    for name in tools[start : start + PAGE]:
        tool = answer.tools.add(name=name, description=f"The tool {name}")
        tool.metadata["mcp.title"] = name.capitalize()
        if name in INPUTS:
            tool.inline_schema.file.add().ParseFromString(acme.DESCRIPTOR.serialized_pb)
            tool.metadata["mcp.input_message"] = f"acme.tools.v1.{INPUTS[name]}Request"
        if name == "find":
            tool.metadata["mcp.output_message"] = "acme.tools.v1.FindResponse"
            tool.metadata["acme.owner"] = "the search team"
            tool.metadata["x-cost"] = "{\"cents\": 2}"
        if name == "broken":
            tool.inline_schema.file[0].dependency.append("not/there.proto")
        if name in far:
            tool.bsr_ref = far[name]
        if name == "distant":
            tool.bsr_ref = "buf.build/acme/tools/acme.tools.v1.FindRequest:v1"
    if start + PAGE < len(tools):
        answer.next_cursor = str(start + PAGE)
    return answer


def find(request):
    asked = acme.FindRequest()
    if not request.arguments.Unpack(asked):
        raise Refused(-32602, f"the arguments are a {request.arguments.TypeName()}")
    answer = pb.CallToolResponse(metadata={"took": "1ms"})
    found = acme.FindResponse(query=asked.query, count=asked.limit, tags=asked.tags, filter=asked.filter)
    answer.success.content.add(text=f"found {asked.query}")
    answer.success.content.add().data.Pack(found)
    return answer


def call_tool(request):
    if request.name == "web_search":
        asked, answer = acme.WebSearchRequest(), pb.CallToolResponse()
        request.arguments.Unpack(asked)
        found = acme.WebSearchResponse(results=[acme.SearchResult(title=asked.query)], total_count=1)
        answer.success.content.add().data.Pack(found)
        return answer
    if request.name == "find":
        return find(request)
    if request.name in far:
        answer = pb.CallToolResponse()
        answer.success.content.add(text=f"{request.arguments.TypeName()} {request.arguments.value.hex()}")
        return answer
    arguments = struct_pb2.Struct()
    if request.HasField("arguments") and not request.arguments.Unpack(arguments):
        raise Refused(-32602, "the arguments are no Struct")
    answer = pb.CallToolResponse()
    content = answer.success.content
    if request.name == "echo":
        content.add(text=json.dumps(json_format.MessageToDict(arguments), sort_keys=True))
        content.add().data.Pack(arguments)
    elif request.name == "picture":
        content.add(image=b"\x89PNG\x00\xff", mime_type="image/png")
    elif request.name == "fail":
        answer.error.code = -32603
        answer.error.message = "the tool broke"
    elif request.name == "refuse":
        raise Refused(-32602, "these arguments do not fit")
    elif request.name == "rule":
        raise Refused(-33001, "a rule is broken")
    elif request.name == "grow":
        tools.append("grown")
        content.add(text="grown")
    elif request.name == "die":
        os._exit(3)
    elif request.name in tools:
        content.add(text=request.name)
    else:
        raise Refused(-32602, "no such tool")
    return answer


def list_resources(request):
    answer = pb.ListResourcesResponse()
    answer.resources.add(uri="file:///hello", name="hello", mime_type="text/plain")
    answer.resources.add(uri="file:///blob", name="blob")
    return answer


def read_resource(request):
    answer = pb.ReadResourceResponse()
    if request.uri == "file:///hello":
        answer.contents.add(uri=request.uri, mime_type="text/plain", text="hello, reader")
    elif request.uri == "file:///blob":
        answer.contents.add(uri=request.uri, blob=b"\x00\xff\x01")
    else:
        raise Refused(-32602, "no such resource")
    return answer


HANDLERS = {
    "initialize": initialize,
    "list_tools": list_tools,
    "call_tool": call_tool,
    "list_resources": list_resources,
    "read_resource": read_resource,
}


class Connection:
    """Messages of one connection: bytes in, answers out."""

    def __init__(self):
        self.announces = False

    def answers(self, data):
        message = pb.MCPMessage.FromString(data)
        if options.record:
            with open(options.record, "a") as record:
                record.write(data.hex() + "\n")
        if message.call_tool_request.name == "raw":
            return [pb.MCPMessage(id=message.id).SerializeToString() + RAW_ANSWER]
        answer = pb.MCPMessage(id=message.id)
        which = message.WhichOneof("payload")
        if which is None:
            return [answer]
        asked = which.removesuffix("_request")
        request = getattr(message, which)
        if asked == "initialize":
            self.announces = request.capabilities.experimental.get("mcp.list_changed", False)
        before = len(tools)
        try:
            getattr(answer, f"{asked}_response").CopyFrom(HANDLERS[asked](request))
        except Refused as refused:
            answer.error_response.CopyFrom(refused.error)
        announcement = pb.MCPMessage(list_tools_response=pb.ListToolsResponse())
        return [answer] + ([announcement] if self.announces and len(tools) != before else [])


def frame(message):
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return struct.pack(">I", len(data)) + data


def spoken_in_json(read, pipe):
    with subprocess.Popen(options.json, stdin=subprocess.PIPE) as server:
        while read:
            server.stdin.write(read)
            server.stdin.flush()
            read = pipe.read1(65536)
        server.stdin.close()


def stdio():
    connection, pipe = Connection(), sys.stdin.buffer
    while head := pipe.read(4):
        if head[:1] in b"{[":
            return spoken_in_json(head, pipe) if options.json else sys.exit("this is no frame")
        (length,) = struct.unpack(">I", head)
        if length:
            for answer in connection.answers(pipe.read(length)):
                sys.stdout.buffer.write(frame(answer))
        sys.stdout.buffer.flush()


async def tcp():
    async def serve(reader, writer):
        connection = Connection()
        try:
            while True:
                (length,) = struct.unpack(">I", await reader.readexactly(4))
                if length:
                    for answer in connection.answers(await reader.readexactly(length)):
                        writer.write(frame(answer))
                    await writer.drain()
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print("at tcp://127.0.0.1:%d" % server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def ws():
    from websockets.asyncio.server import serve

    async def one(socket):
        assert socket.subprotocol == "proto-mcp.v1", socket.subprotocol
        connection, prefixed = Connection(), True
        async for message in socket:
            assert struct.unpack(">I", message[:4])[0] == len(message) - 4
            for answer in connection.answers(message[4:]):
                # Both ways are allowed: in turn.
                await socket.send(frame(answer) if prefixed else frame(answer)[4:])
                prefixed = not prefixed

    async with serve(one, "127.0.0.1", 0, subprotocols=["proto-mcp.v1"]) as server:
        print("at ws://127.0.0.1:%d/proto" % server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()


def details(code, error):
    """A `google.rpc.Status` with the contract's error: a varint and three fields with lengths, by hand."""

    def field(number, data):
        assert len(data) < 128 * 128
        length = bytes([len(data)]) if len(data) < 128 else bytes([len(data) % 128 | 128, len(data) // 128])
        return bytes([number << 3 | 2]) + length + data

    packed = any_pb2.Any()
    packed.Pack(error)
    return bytes([8, code]) + field(2, error.message.encode()) + field(3, packed.SerializeToString())


def over_grpc():
    import grpc

    stub = importlib.import_module("buf.mcp.v1.mcp_pb2_grpc")
    status = {-32602: grpc.StatusCode.INVALID_ARGUMENT, -33001: grpc.StatusCode.INVALID_ARGUMENT}

    def method(name):
        def run(self, request, context):
            try:
                return HANDLERS[name](request)
            except Refused as refused:
                code = status.get(refused.error.code, grpc.StatusCode.FAILED_PRECONDITION)
                if code is not grpc.StatusCode.INVALID_ARGUMENT or refused.error.code != -32602:
                    # MCP's own codes need no details.
                    context.set_trailing_metadata([("grpc-status-details-bin", details(code.value[0], refused.error))])
                context.abort(code, refused.error.message)

        return run

    names = {"initialize": "Initialize", "list_tools": "ListTools", "call_tool": "CallTool"}
    names |= {"list_resources": "ListResources", "read_resource": "ReadResource"}
    service = type("Service", (stub.MCPServiceServicer,), {rpc: method(name) for name, rpc in names.items()})
    server = grpc.server(futures.ThreadPoolExecutor(4))
    stub.add_MCPServiceServicer_to_server(service(), server)
    if options.cert:
        key, cert, ca = (pathlib.Path(file).read_bytes() for file in (options.key, options.cert, options.ca))
        secure = grpc.ssl_server_credentials([(key, cert)], ca, require_client_auth=True)
        port = server.add_secure_port("127.0.0.1:0", secure)
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"at {'https' if options.cert else 'http'}://localhost:{port}", flush=True)
    server.wait_for_termination()


if options.way == "grpc":
    over_grpc()
elif options.way == "stdio":
    stdio()
else:
    asyncio.run({"tcp": tcp, "ws": ws}[options.way]())
