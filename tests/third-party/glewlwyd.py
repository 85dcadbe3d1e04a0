#!/usr/bin/env python3
"""A second authorization server, Debian's `glewlwyd`, against the gateway: a check that is made by hand.

    apt-get install -d glewlwyd     # or install it; then, with its packages unpacked below ROOT (`dpkg -x`):
    glewlwyd.py PORTMOOT ROOT

Starts the authorization server on a new database, an MCP server that checks signature, issuer, audience and expiry of every token, and a gateway. Then the
gateway registers (RFC 7591), signs in by `servers login --paste` as a person whose steps this program makes, calls a tool, renews
(the refresh tokens are good once), survives `kill -9`, and signs out (RFC 7009). Prints a line for each step, and fails at the first
that goes wrong.
"""

import base64
import gzip
import http.cookiejar
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

PORTMOOT, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
HOME = pathlib.Path(tempfile.mkdtemp())


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


IDP = f"http://127.0.0.1:{free_port()}"
ISSUER = f"{IDP}/api/oidc"
MCP_PORT = free_port()
RESOURCE = f"http://127.0.0.1:{MCP_PORT}/mcp"


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


class Person:
    """Signs in at the authorization server by what its pages call."""

    def __init__(self, name, password):
        jar = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self.opener = urllib.request.build_opener(jar, NoRedirect)
        self.call("POST", "/auth", {"username": name, "password": password})

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{IDP}/api{path}", method=method, data=data, headers={"content-type": "application/json"})
        try:
            with self.opener.open(request) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()}") from error

    def location(self, url):
        try:
            with self.opener.open(url) as answer:
                raise RuntimeError(answer.read().decode()[:500])
        except urllib.error.HTTPError as error:
            return error.headers["location"] or error.read().decode()

    def consent(self, url):
        query = urllib.parse.parse_qs(urllib.parse.urlparse(url).query)
        client, scope = query["client_id"][0], query.get("scope", ["mcp"])[0]
        self.call("PUT", f"/auth/grant/{client}", {"scope": scope})
        return self.location(url + "&g_continue")


def authorization_server():
    docs = pathlib.Path(ROOT) / "usr/share/doc/glewlwyd"
    database = HOME / "idp.db"
    with sqlite3.connect(database) as one:
        one.executescript(gzip.open(docs / "database/init.sqlite3.sql.gz").read().decode())
    text = gzip.open(docs / "glewlwyd.conf.sample.gz").read().decode()
    changes = [("/var/cache/glewlwyd/glewlwyd.db", str(database)), ("/usr/lib/glewlwyd", f"{ROOT}/usr/lib/glewlwyd"),
               ("/usr/share/glewlwyd/webapp/", f"{ROOT}/usr/share/glewlwyd/webapp/"), ("http://localhost:4593", IDP),
               ("port=4593", f"port={IDP.rsplit(':', 1)[1]}"), ('#bind_address="127.0.0.1"', 'bind_address="127.0.0.1"'),
               ("cookie_secure=1", "cookie_secure=0"), ('cookie_domain="localhost"', "")]
    for old, new in changes:
        text = text.replace(old, new)
    (HOME / "idp.conf").write_text(text)
    env = dict(os.environ, LD_LIBRARY_PATH=f"{ROOT}/usr/lib/x86_64-linux-gnu")
    log = open(HOME / "idp.log", "w")
    running = subprocess.Popen([f"{ROOT}/usr/bin/glewlwyd", f"--config-file={HOME}/idp.conf"], env=env, stdout=log, stderr=log)
    wait("the authorization server", lambda: Person("admin", "password"))
    admin = Person("admin", "password")
    key = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, check=True).stdout
    public = subprocess.run(["openssl", "rsa", "-pubout"], input=key, capture_output=True, check=True).stdout
    admin.call("POST", "/scope", {"name": "mcp", "display_name": "mcp", "description": "tools", "password_required": True,
                                  "password_max_age": 0, "scheme": {}})
    admin.call("POST", "/user", {"username": "ann", "password": "correct horse", "name": "Ann", "email": "ann@corp.example",
                                 "enabled": True, "scope": ["g_profile", "openid", "mcp"]})
    (HOME / "public.pem").write_bytes(public)
    parameters = {
        "iss": ISSUER, "jwt-type": "rsa", "jwt-key-size": "256", "key": key.decode(), "cert": public.decode(),
        "access-token-duration": 3600, "refresh-token-duration": 1209600, "code-duration": 600, "refresh-token-rolling": False,
        "refresh-token-one-use": "always", "allow-non-oidc": True, "auth-type-code-enabled": True,
        "auth-type-code-revoke-replayed": True, "auth-type-token-enabled": False, "auth-type-id-token-enabled": False,
        "auth-type-none-enabled": False, "auth-type-password-enabled": False, "auth-type-client-enabled": True,
        "auth-type-refresh-enabled": True, "pkce-allowed": True, "pkce-method-plain-allowed": False,
        "introspection-revocation-allowed": True, "introspection-revocation-allow-target-client": True,
        "register-client-allowed": True, "register-client-auth-scope": [], "register-client-credentials-scope": [],
        "resource-allowed": True, "resource-scope": {"mcp": [RESOURCE]}, "resource-client-property": "",
        "oauth-as-iss-id": True, "allowed-scope": ["openid", "mcp"], "subject-type": "public", "scope": [],
        "additional-parameters": [], "claims": [], "session-management-allowed": False, "client-secret-parameter": "client_secret"}
    admin.call("POST", "/mod/plugin", {"module": "oidc", "name": "oidc", "display_name": "oidc", "parameters": parameters,
                                       "enabled": True})
    return running


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class McpServer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ended = set()
    tokens = []

    def log_message(self, *_):
        pass

    def answer(self, status, body=None, challenge=None):
        text = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        if challenge:
            self.send_header("www-authenticate", challenge)
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        if self.path == "/.well-known/oauth-protected-resource/mcp":
            return self.answer(200, {"resource": RESOURCE, "authorization_servers": [ISSUER], "scopes_supported": ["mcp"]})
        self.answer(405)

    def do_DELETE(self):
        self.answer(200)

    def accepts(self, token):
        if token in self.ended:
            return False
        signed, _, signature = token.rpartition(".")
        header, claims = (json.loads(decoded(part)) for part in signed.split("."))
        (HOME / "signature").write_bytes(decoded(signature))
        check = ["openssl", "dgst", "-sha256", "-verify", HOME / "public.pem", "-signature", HOME / "signature"]
        is_signed = subprocess.run(check, input=signed.encode(), capture_output=True, check=False).returncode == 0
        audience = claims.get("aud", [])
        is_ours = RESOURCE in ([audience] if isinstance(audience, str) else audience)
        fits = is_signed and is_ours and header["alg"] == "RS256" and claims["iss"] == ISSUER and time.time() < claims["exp"]
        if not fits:
            print(f"  not accepted: {is_signed} {header} {claims}", flush=True)
        return fits

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
        document = f'resource_metadata="http://127.0.0.1:{MCP_PORT}/.well-known/oauth-protected-resource/mcp"'
        if not token:
            return self.answer(401, challenge=f"Bearer {document}")
        if not self.accepts(token):
            return self.answer(401, challenge=f'Bearer error="invalid_token", {document}')
        if token not in self.tokens:
            self.tokens.append(token)
        results = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "g", "version": "1"}},
            "tools/list": {"tools": [{"name": "search", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "found"}]}}
        if "id" not in message:
            return self.answer(202)
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})})


def wait(what, ask, seconds=20):
    end = time.time() + seconds
    while True:
        try:
            found = ask()
            if found:
                return found
        except (OSError, ValueError, AssertionError):
            pass
        if time.time() > end:
            raise SystemExit(f"not in time: {what}")
        time.sleep(0.1)


def portmoot(*words, **more):
    env = {"HOME": str(HOME), "PATH": os.environ["PATH"]}
    return subprocess.run([PORTMOOT, *words], env=env, cwd=HOME, text=True, capture_output=True, **more)


def serve():
    env = {"HOME": str(HOME), "PATH": os.environ["PATH"]}
    log = open(HOME / "gateway.log", "a")
    return subprocess.Popen([PORTMOOT, "serve", "--config", "portmoot.toml"], env=env, cwd=HOME, stdout=log, stderr=log)


def account():
    return json.loads(portmoot("servers", "auth", "g", "--json").stdout)["accounts"][0]


def call():
    ran = portmoot("tools", "call", "g_search")
    return "found" in ran.stdout


def step(what, holds=True):
    print(("ok    " if holds else "FAILED ") + what, flush=True)
    if not holds:
        raise SystemExit(1)


def main():
    idp = authorization_server()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", MCP_PORT), McpServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (HOME / "key").write_text("5e" * 32)
    (HOME / "key").chmod(0o600)
    (HOME / "portmoot.toml").write_text(
        f'[server]\nlisten = "127.0.0.1:{free_port()}"\nkey_file = "key"\n[topics.main]\n[servers.g]\nurl = "{RESOURCE}"\nera = "legacy"\n')
    gateway = serve()
    try:
        wait("needs_login", lambda: account()["state"] == "needs_login")
        step("it needs a sign-in")
        env = {"HOME": str(HOME), "PATH": os.environ["PATH"]}
        asking = subprocess.Popen([PORTMOOT, "servers", "login", "g", "--paste"], env=env, cwd=HOME, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        url = None
        for line in asking.stderr:
            found = re.search(r"http://\S+", line)
            if found:
                url = found.group(0)
                break
            print("  " + line.rstrip())
        step("it has registered", url is not None)
        back = Person("ann", "correct horse").consent(url)
        step(f"a person signs in: {back.split('?')[0]}", back.startswith("http://127.0.0.1/callback?"))
        out, errors = asking.communicate(back + "\n", timeout=20)
        print("  " + errors.strip().replace("\n", "\n  "))
        step("the code is exchanged", asking.returncode == 0)
        wait("the tools", call)
        step("a tool answers")
        first = account()
        step(f"issuer and scopes: {first['issuer']} {first['scopes']}", first["issuer"] == ISSUER and first["renews"])
        for _ in range(3):
            McpServer.ended.update(McpServer.tokens)
            wait("a renewed token", call)
        step("the token is renewed three times", len(McpServer.tokens) == 4)
        gateway.send_signal(signal.SIGKILL)
        gateway.wait()
        gateway = serve()
        wait("the account after kill -9", call)
        step("the account is there after kill -9", account()["state"] == "ready")
        last = McpServer.tokens[-1]
        ran = portmoot("servers", "logout", "g")
        print("  " + ran.stderr.strip())
        step("it signs out, and the refresh token is revoked", ran.returncode == 0 and "not revoked" not in ran.stderr)
        step("the account needs a sign-in", account()["state"] == "needs_login" and not call())
        text = (HOME / "gateway.log").read_text()
        step("no token is in the log", not any(token in text for token in McpServer.tokens) and last not in text)
    finally:
        gateway.kill()
        idp.kill()


main()
