"""HTTP proxy on loopback that records what an MCP client sends: each request's method, headers and JSON-RPC message, one object a line,
with the seconds since the first request; and for answers to `tools/list` the number of tools. Prints `listening on ADDRESS`."""

import argparse
import http.client
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NOT_PASSED = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}


class Recorder(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target = ("127.0.0.1", 0)
    log = ""
    hold = 0.0
    lock = threading.Lock()
    began = None

    def record(self, what):
        with self.lock:
            Recorder.began = Recorder.began or time.monotonic()
            what = {"at": round(time.monotonic() - Recorder.began, 3)} | what
            with open(self.log, "a", encoding="utf-8") as log:
                log.write(json.dumps(what) + "\n")

    def relay(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in NOT_PASSED}
        message = json.loads(body) if body else None
        self.record({"http": self.command, "path": self.path, "headers": headers, "message": message})
        connection = http.client.HTTPConnection(*self.target)
        connection.request(self.command, self.path, body or None, headers)
        answer = connection.getresponse()
        if isinstance(message, dict) and message.get("method") == "tools/list":
            time.sleep(self.hold)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in NOT_PASSED:
                self.send_header(name, value)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        whole = b""
        try:
            while part := answer.read1(65536):
                self.wfile.write(part)
                self.wfile.flush()
                if self.command == "GET":
                    self.record({"stream": part.decode()})
                else:
                    whole += part
        except OSError as error:
            self.record({"client left": str(error)})
        finally:
            connection.close()
        if isinstance(message, dict):
            told = {"answer to": message.get("method"), "status": answer.status, "bytes": len(whole)}
            self.record(told | {"begins": whole[:300].decode(errors="replace")})

    do_GET = do_POST = do_DELETE = relay

    def log_message(self, *_words):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", required=True)
    parser.add_argument("--to", required=True, help="HOST:PORT of the gateway")
    parser.add_argument("--hold", type=float, default=0.0, help="seconds before each answer to `tools/list`")
    words = parser.parse_args()
    host, port = words.to.rsplit(":", 1)
    Recorder.log, Recorder.hold, Recorder.target = words.log, words.hold, (host, int(port))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


main()
