#!/usr/bin/env python3
"""Rotel, a collector of OpenTelemetry, that exports what it receives to one more collector.

    collects.py URL

Prints its address, `http://127.0.0.1:PORT`, once it can be reached, and runs until its standard input ends. Rotel compresses what it exports,
so it exports to this script, which sends the same message to URL without compression.
"""

import gzip
import http.server
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request

import rotel

AGENT = pathlib.Path(rotel.__file__).parent / "rotel-agent"


class Uncompressed(http.server.BaseHTTPRequestHandler):
    """Sends on each message without its compression."""

    def do_POST(self):
        message = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-encoding"] == "gzip":
            message = gzip.decompress(message)
        headers = {"content-type": self.headers["content-type"]}
        sent = urllib.request.Request(sys.argv[1] + self.path, message, headers)
        with urllib.request.urlopen(sent) as answer:
            self.send_response(answer.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def free_ports(count):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def start(exports_to, folder):
    """Starts the collector, and returns it with its address. Another program may take a port before it does: then it ends."""
    while True:
        grpc, http_port = free_ports(2)
        agent = subprocess.Popen(
            [AGENT, "start", "--pid-file", f"{folder}/pid", "--log-file", f"{folder}/log", "--disable-batching"]
            + ["--otlp-grpc-endpoint", f"127.0.0.1:{grpc}", "--otlp-http-endpoint", f"127.0.0.1:{http_port}"]
            + ["--exporter", "otlp", "--otlp-exporter-protocol", "http", "--otlp-exporter-endpoint", exports_to],
            stdin=subprocess.DEVNULL, stdout=sys.stderr,
        )
        while agent.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", http_port), timeout=1).close()
                return agent, f"http://127.0.0.1:{http_port}"
            except OSError:
                threading.Event().wait(0.02)


def main():
    relay = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Uncompressed)
    threading.Thread(target=relay.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        agent, address = start(f"http://127.0.0.1:{relay.server_port}", folder)
        print(address, flush=True)
        sys.stdin.read()
        agent.terminate()
        agent.wait()


if __name__ == "__main__":
    main()
