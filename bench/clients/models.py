"""Stub of three model APIs on loopback: Anthropic's Messages, OpenAI's Responses, Google's Gemini.

To a request that offers tools it answers with the next of the calls that it was told to make, chosen by the number of results that the
conversation has already; after the last one it answers with the text of the last result. What arrives is appended to a file, one JSON object
a line: the API, the names of all tools, the results so far. Prints `listening on ADDRESS` once it serves.
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Messages:
    """`POST /v1/messages` of Anthropic."""

    name = "messages"

    def tools(self, body):
        return {tool["name"]: tool["name"] for tool in body.get("tools", []) if "name" in tool}

    def results(self, body):
        blocks = [
            block
            for message in body["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        return [text_of(block.get("content")) for block in blocks if block["type"] == "tool_result"]

    def call(self, number, tool, arguments):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        return self.stream(block, delta, "tool_use")

    def text(self, text):
        return self.stream({"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn")

    def stream(self, block, delta, reason):
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stub", "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        ending = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_start", "message": message}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": ending, "usage": usage}
        yield {"type": "message_stop"}


class Responses:
    """`POST /v1/responses` of OpenAI. Tools of a server may be in a namespace."""

    name = "responses"

    def tools(self, body):
        found = {}
        for tool in body.get("tools", []):
            inner = tool["tools"] if tool["type"] == "namespace" else [tool]
            space = tool["name"] if tool["type"] == "namespace" else None
            found |= {(space or "") + one["name"]: (space, one["name"]) for one in inner if "name" in one}
        return found

    def results(self, body):
        outputs = [item for item in body["input"] if item.get("type", "").endswith("_call_output")]
        return [text_of(item["output"]) for item in outputs]

    def call(self, number, tool, arguments):
        space, name = tool
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
        item["arguments"] = json.dumps(arguments)
        return self.stream(item | ({"namespace": space} if space else {}))

    def text(self, text):
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return self.stream({"type": "message", "id": "msg_1", "role": "assistant", "content": content})

    def stream(self, item):
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        usage |= {"input_tokens_details": None, "output_tokens_details": None}
        yield {"type": "response.created", "response": {"id": "resp_1"}}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}


class Gemini:
    """`POST /v1beta/models/MODEL:streamGenerateContent` of Google."""

    name = "gemini"

    def tools(self, body):
        lists = [tool.get("functionDeclarations", []) for tool in body.get("tools", [])]
        return {one["name"]: one["name"] for declared in lists for one in declared}

    def results(self, body):
        parts = [part for content in body["contents"] for part in content["parts"]]
        answers = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
        return [text_of(answer.get("output", answer)) for answer in answers]

    def call(self, _number, tool, arguments):
        return self.stream({"functionCall": {"name": tool, "args": arguments}})

    def text(self, text):
        return self.stream({"text": text})

    def stream(self, part):
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stub"}


def text_of(content):
    """The text of a tool's result in any of the three spellings."""
    if isinstance(content, list):
        return "\n".join(text_of(part.get("text", part) if isinstance(part, dict) else part) for part in content)
    return content if isinstance(content, str) else json.dumps(content)


def plain(name):
    """A tool's name as all clients spell it."""
    return name.replace("-", "_")


def api_of(path):
    if path.endswith("/messages"):
        return Messages()
    if path.endswith("/responses"):
        return Responses()
    return Gemini() if path.endswith("enerateContent") else None


class Stub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    calls: list = []
    log = ""
    think = 0.0
    lock = threading.Lock()

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.split("?")[0]
        api = api_of(path)
        if api is None:
            return self.send({"input_tokens": 1, "totalTokens": 1})
        body = json.loads(text)
        tools, results = api.tools(body), api.results(body)
        wanted = self.calls[len(results)] if len(results) < len(self.calls) else None
        found = next((tool for name, tool in tools.items() if wanted and plain(name).endswith(plain(wanted[0]))), None)
        record = {"api": api.name, "path": path, "tools": list(tools), "results": results}
        with self.lock, open(self.log, "a", encoding="utf-8") as log:
            log.write(json.dumps(record) + "\n")
        time.sleep(self.think)
        if found is None:
            answer = api.text(results[-1] if results else f"no tool {wanted}")
        else:
            answer = api.call(len(results), found, wanted[1])
        if api.name == "gemini" and "stream" not in path:
            return self.send(next(answer))
        if api.name == "messages" and not body.get("stream"):
            whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stub"}
            whole |= {"content": [{"type": "text", "text": "{}"}], "stop_reason": "end_turn"}
            return self.send(whole | {"usage": {"input_tokens": 1, "output_tokens": 1}})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in answer:
            head = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{head}data: {json.dumps(event)}\n\n".encode())
        self.close_connection = True

    def do_GET(self):
        self.send({"data": [], "models": []})

    do_HEAD = do_GET

    def send(self, value):
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *_words):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", required=True)
    parser.add_argument("--calls", default="[]", help='a JSON list of ["END OF A TOOL\'S NAME", {ARGUMENTS}]')
    parser.add_argument("--think", type=float, default=0.0, help="seconds before each answer, as a model takes")
    words = parser.parse_args()
    Stub.think = words.think
    Stub.log, Stub.calls = words.log, json.loads(words.calls)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Stub)
    print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


main()
