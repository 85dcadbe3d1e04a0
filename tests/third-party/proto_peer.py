"""proto-mcp by its contract file alone: generated messages, framed connections, and messages of tools' own schemas."""

import importlib
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import tempfile

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, json_format, message_factory, struct_pb2
from google.protobuf import duration_pb2, timestamp_pb2  # noqa: F401  known to the default pool
from grpc_tools import protoc
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

CONTRACT = pathlib.Path(__file__).parents[2] / "crates/protocol/wire/proto"


def contract():
    """The contract's module, generated into a folder of its own."""
    out = tempfile.mkdtemp(prefix="contract-")
    # grpc_tools brings google/protobuf along.
    common = os.path.join(os.path.dirname(protoc.__file__), "_proto")
    arguments = ["", f"-I{CONTRACT}", f"-I{common}", f"--python_out={out}", f"--grpc_python_out={out}", "buf/mcp/v1/mcp.proto"]
    if protoc.main(arguments) != 0:
        raise RuntimeError("the contract cannot be compiled")
    sys.path.insert(0, out)
    return importlib.import_module("buf.mcp.v1.mcp_pb2")


mcp = contract()


def frame(message):
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return struct.pack(">I", len(data)) + data


class Pipe:
    """A child that is spoken to on its pipes."""

    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def write(self, data):
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def read(self, count):
        return self.child.stdout.read(count)

    def close(self):
        self.child.stdin.close()
        rest = self.child.stdout.read()
        return rest, self.child.wait(timeout=30)


class Socket:
    """A connection over TCP, with TLS if there is something to trust."""

    def __init__(self, host, port, ca="", cert="", key=""):
        self.socket = socket.create_connection((host, int(port)))
        if ca:
            context = ssl.create_default_context(cafile=ca)
            if cert:
                context.load_cert_chain(cert, key)
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")

    def write(self, data):
        self.socket.sendall(data)

    def read(self, count):
        return self.file.read(count)

    def close(self):
        if not isinstance(self.socket, ssl.SSLSocket):
            self.socket.shutdown(socket.SHUT_WR)
        return self.file.read(), 0


class WebSocket:
    """A WebSocket, whose binary messages are frames."""

    def __init__(self, url, ca="", cert="", key="", token="", **headers):
        context = None
        if url.startswith("wss:"):
            context = ssl.create_default_context(cafile=ca)
            if cert:
                context.load_cert_chain(cert, key)
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        self.socket = connect(
            url, ssl=context, subprotocols=["proto-mcp.v1"], additional_headers=headers, max_size=None, proxy=None
        )
        assert self.socket.subprotocol == "proto-mcp.v1", self.socket.subprotocol
        self.rest = b""

    def write(self, data):
        self.socket.send(data)

    def read(self, count):
        while len(self.rest) < count:
            try:
                self.rest += self.socket.recv()
            except ConnectionClosed:
                break
        read, self.rest = self.rest[:count], self.rest[count:]
        return read

    def close(self):
        """What came until the end, and the code with which the server closed; 0 if the client did."""
        try:
            while True:
                self.rest += self.socket.recv(timeout=30)
        except ConnectionClosed as end:
            return self.rest, end.rcvd.code if end.rcvd and end.rcvd_then_sent else 0


class Peer:
    """One framed connection."""

    def __init__(self, way):
        self.way = way
        self.last = 0
        # How often the server said that a list has changed.
        self.changes = 0

    def send(self, message):
        self.way.write(frame(message))

    def receive(self):
        length = self.way.read(4)
        if len(length) < 4:
            raise EOFError(f"the connection ended after {length!r}")
        data = self.way.read(struct.unpack(">I", length)[0])
        if not data:
            # It keeps the connection alive.
            return self.receive()
        answer = mcp.MCPMessage()
        answer.ParseFromString(data)
        if answer.id == 0 and answer.WhichOneof("payload") in ("list_tools_response", "list_resources_response"):
            self.changes += 1
            return self.receive()
        return answer

    def ask(self, **payload):
        self.last += 1
        self.send(mcp.MCPMessage(id=self.last, **payload))
        answer = self.receive()
        assert answer.id == self.last, answer
        return answer


def packed(message):
    value = any_pb2.Any()
    value.Pack(message)
    return value


def plain(arguments):
    """Arguments as a Struct, which every tool accepts."""
    value = struct_pb2.Struct()
    value.update(arguments)
    return packed(value)


def typed(tool, arguments):
    """Arguments as the tool's own message, by the schema that came inline."""
    return typed_by(tool.inline_schema.file, tool.metadata["mcp.input_message"], arguments)


def typed_by(files, name, arguments):
    """Arguments as the message of this name in these files."""
    pool = descriptor_pool.DescriptorPool()
    for known in ("any", "duration", "struct", "timestamp"):
        module = importlib.import_module(f"google.protobuf.{known}_pb2")
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        pool.Add(file)
    for file in files:
        if file.name.startswith(("google/protobuf/", "buf/validate/")):
            continue
        # The rules' own file is one that both sides have; here nothing reads them.
        kept = [one for one in file.dependency if not one.startswith("buf/validate/")]
        del file.dependency[:]
        file.dependency.extend(kept)
        pool.Add(file)
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))()
    return packed(json_format.ParseDict(arguments, message))


def text(answer):
    return [one.text for one in answer.call_tool_response.success.content if one.HasField("text")]
