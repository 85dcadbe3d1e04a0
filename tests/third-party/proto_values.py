"""Arguments and results that fit the JSON Schemas of tools, drawn by hypothesis, as messages: what Portmoot writes is read by Google's
runtime with the descriptors that Portmoot made, compared with Google's own mapping of the JSON, written again, and read by Portmoot.

The first line on stdin names the modules; then each line on stdout is a question, and the next line on stdin its answer. The last line
on stdout is the report.
"""

import json
import sys
import warnings

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, struct_pb2
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis_jsonschema import from_schema

# How many values of each schema.
CLOSED, EDGES, OPEN = 7, 4, 3
# What stands at the edges of a type that a schema does not bound further.
EDGE = {
    "integer": [0, -1, 2**31, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63],
    "number": [0, -0.0, 0.1, -1e300, 5e-324, 2**53, 1e22, 2**53 + 1, -7],
    "string": ["", "\x00", "null", "\u20ac\U0001f600", '"\\/', " ", "\u2028", "1"],
}
BOUNDS = ("enum", "const", "format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength")
# Whole numbers that a double has exactly, and those of int64.
DOUBLE_MAX, INT64_MAX = 2**53, 2**63

warnings.simplefilter("ignore")


def ask(**question):
    print(json.dumps(question), flush=True)
    return json.loads(sys.stdin.readline())


def prepared(schema, close=True, edges=False):
    """The schema without its dialect, which the generator does not know. `close`: no object with named members has others, for which
    there is no field. `edges`: simple values are those of `EDGE`."""
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "$schema"}
    if edges and str(kept.get("type")) in EDGE and not any(key in kept for key in BOUNDS):
        return {"enum": EDGE[kept["type"]]}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = prepared(kept[key], close, edges)
    for key in ("properties", "$defs", "definitions"):
        if key in kept:
            kept[key] = {name: prepared(inner, close, edges) for name, inner in kept[key].items()}
    for key in ("anyOf", "oneOf", "allOf"):
        if key in kept:
            kept[key] = [prepared(inner, close, edges) for inner in kept[key]]
    if close and kept.get("properties") and kept.get("additionalProperties") in (None, True, {}):
        kept["additionalProperties"] = False
    return kept


def draws(schema, count):
    drawn = []

    @settings(
        derandomize=True, max_examples=count, database=None, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(from_schema(schema))
    def draw(value):
        drawn.append(value)

    draw()
    return drawn


def same(one, other):
    """Equal as JSON values: numbers by value, and no boolean is a number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def whole_numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for inner in value for number in whole_numbers(inner)]
    return [value] if isinstance(value, int) and not isinstance(value, bool) else []


def may_refuse(value, why):
    """Whether the value has a number that the reason for its refusal fits."""
    numbers = whole_numbers(value)
    if "is not in the range of int64" in why:
        return any(not -INT64_MAX <= number < INT64_MAX for number in numbers)
    if "is an integer that a double cannot hold" in why:
        return any(abs(number) > DOUBLE_MAX and int(float(number)) != number for number in numbers)
    return False


def descriptors(data):
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(bytes.fromhex(data)).file:
        pool.Add(file)
    return pool


class Way:
    """One schema of a tool, and its message."""

    def __init__(self, pool, name, place):
        self.place = place
        self.url = "type.googleapis.com/" + name
        known = {"google.protobuf.Struct": struct_pb2.Struct, "google.protobuf.Value": struct_pb2.Value}.get(name)
        self.message = known or message_factory.GetMessageClass(pool.FindMessageTypeByName(name))

    def check(self, value, report):
        text = json.dumps(value)
        typed = ask(write=text, **self.place)
        if "refused" in typed:
            assert may_refuse(value, typed["refused"]), f"{self.place}: {typed['refused']}: {text}"
            report["refused"] += 1
            return
        assert typed["url"] == self.url, f"{self.place}: {typed['url']}"
        message = self.message.FromString(bytes.fromhex(typed["bytes"]))
        expected = json_format.ParseDict(value, self.message())
        assert message == expected, f"{self.place}: {text} is {message}, not {expected}"
        marks = {"empty": typed["empty"], "null": typed["null"]}
        read = ask(read=message.SerializeToString().hex(), url=self.url, **marks, **self.place)
        assert same(json.loads(read["json"]), value), f"{self.place}: {text} came back as {read['json']}"
        report["equal"] += 1
        report["marked"] += bool(typed["empty"] or typed["null"])


def tour(modules, report):
    for at, module in enumerate(modules):
        pool = descriptors(module["set"])
        for tool in module["tools"]:
            report["tools"] += 1
            place = {"module": at, "tool": tool["name"]}
            for way in ("arguments", "result"):
                if tool.get(way):
                    one = Way(pool, tool[way]["message"], {"way": way, **place})
                    schema = tool[way]["schema"]
                    for value in draws(prepared(schema), CLOSED) + draws(prepared(schema, edges=True), EDGES):
                        one.check(value, report)
            # Members that no field has travel in a Struct.
            one = Way(pool, "google.protobuf.Struct", {"way": "struct", **place})
            for value in draws(prepared(tool["arguments"]["schema"], close=False), OPEN):
                one.check(value, report)


report = {"tools": 0, "equal": 0, "refused": 0, "marked": 0}
tour(json.loads(sys.stdin.readline()), report)
print(json.dumps({"report": report}), flush=True)
