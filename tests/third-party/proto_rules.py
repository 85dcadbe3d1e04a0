"""Random messages for the tools of a gateway: its refusals beside those of Python's protovalidate, by the schemas that came inline.

    proto_rules.py --each N --servers NAME,... --pipe COMMAND...

Prints one JSON report.
"""

import json
import os
import pathlib
import random
import sys
import tempfile
import time

import protovalidate
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_tools import protoc

from proto_peer import Peer, Pipe, packed

RULES = pathlib.Path(__file__).parents[2] / "crates/protocol/schema/proto"
TEXTS = ["", "a", "ab", "abc", "A-1", "x" * 40, "grün", "\u20ac\U0001f600", " ", "a@b.example", "a@b@c", "@", "http://a.example/b?c#d", "/b c",
    "b/c", "http://[::1]/", "a.example", "-a.example", "a_b", "127.0.0.1", "127.0.0.256", "::1", "::g", "1:2:3:4:5:6:7:8",
    "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-00000000000", "2026-01-01", "%zz", "%", "a.b", "[a]", "]", '"[']
NUMBERS = [0, 1, -1, 2, 3, 10, 100, 2**31 - 1, -(2**31)]
JSON = [None, True, 0, 1.5, "a", [], {}, [1, {"a": None}], {"a": [1], "b": "c"}]


def imports():
    """The files that a set leaves out."""
    out = os.path.join(tempfile.mkdtemp(prefix="rules-"), "set")
    common = os.path.join(os.path.dirname(protoc.__file__), "_proto")
    known = [f"google/protobuf/{name}.proto" for name in ("any", "duration", "struct", "timestamp", "wrappers", "field_mask", "empty")]
    arguments = ["", f"-I{RULES}", f"-I{common}", "--include_imports", f"--descriptor_set_out={out}", "buf/validate/validate.proto", *known]
    if protoc.main(arguments) != 0:
        raise RuntimeError("validate.proto cannot be compiled")
    return descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out).read_bytes()).file


def leaves(schema):
    """All texts and numbers in a JSON Schema: its values and bounds."""
    if isinstance(schema, dict):
        return [leaf for key, inner in schema.items() if key not in ("description", "title") for leaf in leaves(inner)]
    if isinstance(schema, list):
        return [leaf for inner in schema for leaf in leaves(inner)]
    return [schema] if isinstance(schema, (str, int, float)) and not isinstance(schema, bool) else []


class Draw:
    """Random messages with values that are near those of the schema."""

    def __init__(self, rng, schema):
        self.rng = rng
        found = leaves(schema)
        self.texts = TEXTS + [leaf for leaf in found if isinstance(leaf, str)] * 2
        self.texts += [text * count for count in {leaf for leaf in found if isinstance(leaf, int) and 0 < leaf < 300} for text in ("x", "xy")]
        self.numbers = NUMBERS + [leaf + by for leaf in found if isinstance(leaf, (int, float)) for by in (-1, 0, 1)]

    def message(self, message, depth=0):
        """Fills the message."""
        for field in message.DESCRIPTOR.fields:
            if self.rng.random() < 0.2 + 0.15 * depth:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                values = getattr(message, field.name)
                of_messages = field.message_type.fields_by_name["value"].message_type is not None
                for _ in range(self.rng.randrange(4)):
                    key = self.rng.choice(self.texts) if field.message_type.fields_by_name["key"].type == field.TYPE_STRING else self.rng.randrange(9)
                    if of_messages:
                        self.one(values[key], depth)
                    else:
                        values[key] = self.scalar(field.message_type.fields_by_name["value"])
            elif field.is_repeated:
                values = getattr(message, field.name)
                for _ in range(self.rng.randrange(5)):
                    if field.message_type is not None:
                        self.one(values.add(), depth)
                    else:
                        values.append(self.scalar(field))
            elif field.message_type is not None:
                self.one(getattr(message, field.name), depth)
            else:
                setattr(message, field.name, self.scalar(field))
        return message

    def one(self, inner, depth):
        inner.SetInParent()
        name = inner.DESCRIPTOR.full_name
        if name in ("google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"):
            fits = {"Struct": dict, "ListValue": list}.get(name.rsplit(".")[-1], object)
            json_format.ParseDict(self.rng.choice([value for value in JSON if isinstance(value, fits)]), inner)
        elif name.startswith("google.protobuf."):
            for field in inner.DESCRIPTOR.fields:
                setattr(inner, field.name, self.scalar(field))
        elif depth < 4:
            self.message(inner, depth + 1)

    def scalar(self, field):
        if field.cpp_type == field.CPPTYPE_STRING:
            text = self.rng.choice(self.texts)
            return text.encode() if field.type == field.TYPE_BYTES else text
        if field.cpp_type == field.CPPTYPE_BOOL:
            return self.rng.random() < 0.5
        if field.cpp_type == field.CPPTYPE_ENUM:
            return self.rng.choice([0, 1, 2, 7])
        number = self.rng.choice(self.numbers)
        if field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            return number + self.rng.choice([0, 0.5])
        low, high = {
            field.CPPTYPE_INT32: (-(2**31), 2**31 - 1), field.CPPTYPE_UINT32: (0, 2**32 - 1), field.CPPTYPE_UINT64: (0, 2**64 - 1),
        }.get(field.cpp_type, (-(2**63), 2**63 - 1))
        return min(max(int(number), low), high)


def place(path):
    """A field path as it is written in a violation."""
    steps = []
    for element in path.elements if path is not None else []:
        key = element.subscript
        shown = "" if key is None else f"[{json.dumps(key.value, ensure_ascii=False)}]"
        steps.append(element.field_name + shown)
    return ".".join(steps)


def expected(validator, message):
    found = [violation.proto for violation in validator.collect_violations(message)]
    return sorted([place(one.field), one.rule_id] for one in found)


def seen(peer, name, message):
    answer = peer.ask(call_tool_request={"name": name, "arguments": packed(message)})
    if not answer.HasField("error_response"):
        return []
    error = answer.error_response
    data = json_format.MessageToDict(error.data)
    if error.code != -33001 or "violations" not in data:
        return [error.code, error.message]
    return sorted([one.get("field", ""), one["rule"]] for one in data["violations"])


def listed(peer):
    cursor = ""
    while True:
        page = peer.ask(list_tools_request={"include_schemas": True, "cursor": cursor}).list_tools_response
        yield from page.tools
        cursor = page.next_cursor
        if not cursor:
            return


def listed_of(peer, servers):
    """The tools once all servers have theirs in the list: a slow one is listed later."""
    end = time.monotonic() + 100
    while True:
        tools = list(listed(peer))
        late = [server for server in servers if not any(tool.name.startswith(f"{server}_") for tool in tools)]
        if not late:
            return tools
        assert time.monotonic() < end, f"not listed in time: {late}"
        time.sleep(0.1)


def main():
    arguments = sys.argv[1:]
    each, servers = int(arguments[1]), arguments[3].split(",")
    peer = Peer(Pipe(arguments[5:]))
    peer.ask(initialize_request={"protocol_version": "1.0.0", "capabilities": {"experimental": {"mcp.json_schema": True}}})
    common, rng = imports(), random.Random(12)
    report = {"tools": 0, "valid": 0, "invalid": 0, "rules": {}, "different": []}
    for tool in listed_of(peer, servers):
        name = tool.metadata["mcp.input_message"]
        if not tool.HasField("inline_schema") or name == "google.protobuf.Struct":
            continue
        pool = descriptor_pool.DescriptorPool()
        for file in [*common, *tool.inline_schema.file]:
            pool.Add(file)
        make = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        validator = protovalidate.Validator()
        draw = Draw(rng, json.loads(tool.metadata["mcp.input_schema"] or "{}"))
        report["tools"] += 1
        count = each * 25 if "ruled" in tool.name else each
        for _ in range(count):
            message = draw.message(make())
            should, is_so = expected(validator, message), seen(peer, tool.name, message)
            report["invalid" if should else "valid"] += 1
            for _, rule in should:
                report["rules"][rule] = report["rules"].get(rule, 0) + 1
            if should != is_so:
                shown = json_format.MessageToDict(message)
                report["different"].append({"tool": tool.name, "message": shown, "protovalidate": should, "gateway": is_so})
    peer.way.close()
    print(json.dumps(report))


main()
