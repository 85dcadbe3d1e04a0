"""Eleven servers from npm and PyPI as `tests/third-party/install` installs them, a gateway in front of them, and what runs below it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEPS = Path(os.environ.get("PORTMOOT_DEPS", ROOT / ".deps")).resolve()


def servers(world):
    """The servers of the measurement, on files in this folder."""
    node = str(DEPS / "node/node_modules/node/bin/node")

    def npm(name, *words, **env):
        script = str(DEPS / "node/node_modules/.bin" / name)
        return {"command": node, "args": [script, *words], "env": env}

    def pypi(name, *words):
        return {"command": str(DEPS / "python/bin" / name), "args": list(words)}

    for name, text in {"files/note.txt": "a note", "vault/.obsidian/app.json": "{}"}.items():
        (world / name).parent.mkdir(parents=True, exist_ok=True)
        (world / name).write_text(text)
    subprocess.run(["git", "init", "-q", world / "repository"], check=True)
    return {
        "everything": npm("mcp-server-everything", "stdio"),
        "filesystem": npm("mcp-server-filesystem", str(world / "files")),
        "memory": npm("mcp-server-memory", MEMORY_FILE_PATH=str(world / "memory.jsonl")),
        "thinking": npm("mcp-server-sequential-thinking"),
        "commands": npm("mcp-server-commands"),
        "obsidian": npm("obsidian-mcp", "serve", "--vault", f"notes={world / 'vault'}"),
        "brave": npm("mcp-server-brave-search", BRAVE_API_KEY="none"),
        "tavily": npm("tavily-mcp", TAVILY_API_KEY="none"),
        "time": pypi("mcp-server-time"),
        "git": pypi("mcp-server-git"),
        "fetch": pypi("mcp-server-fetch"),
    }


def asker():
    """A server that lists a tool which asks for a form to every client."""
    return {"asker": {"command": sys.executable, "args": [str(ROOT / "crates/program/portmoot/tests/it/one_port.py"), "0"]}}


class Gateway:
    """A running gateway on a free port with a folder of its own."""

    def __init__(self, program, folder, config, keys=""):
        self.program, self.folder = program, folder
        self.log = open(folder / "gateway.log", "ab")
        self.options = ["--data-dir", str(folder / "state")]
        if keys:
            (folder / "portmoot.toml").write_text(keys)
            self.options += ["--config", str(folder / "portmoot.toml")]
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": config}))
        self.options += ["--mcp-config", str(folder / "mcp.json")]
        self.start()

    def start(self):
        words = [self.program, "serve", "--listen", "127.0.0.1:0", *self.options]
        env = {"HOME": str(self.folder), "PATH": os.environ["PATH"]}
        self.child = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=self.log, env=env)
        self.address = None
        for line in self.child.stderr:
            self.log.write(line)
            found = re.search(rb"MCP +http://([^/]+)/mcp", line)
            if found:
                self.address = found[1].decode()
                break
        if self.address is None:
            sys.exit(f"the gateway ended: see {self.folder / 'gateway.log'}")
        # Its output goes on, and must be read.
        self.reader = subprocess.Popen(["cat"], stdin=self.child.stderr, stdout=self.log)

    def servers(self):
        with urllib.request.urlopen(f"http://{self.address}/api/v1/servers") as answer:
            return json.load(answer)["servers"]

    def wait(self, what, so, seconds=120):
        end = time.monotonic() + seconds
        while not so(self.servers()):
            if time.monotonic() > end:
                sys.exit(f"not in time: {what}: {self.servers()}")
            time.sleep(0.1)

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()
        self.reader.wait()


def processes(pid):
    """What runs below a process except the gateway's own keepers, and their resident bytes."""
    parents, found = {}, []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
                words = (entry / "cmdline").read_bytes().split(b"\0")
                pages = int((entry / "statm").read_text().split()[1])
            except (OSError, IndexError):
                continue
            if stat[0] != "Z":
                parents[int(entry.name)] = (int(stat[1]), words[0], pages * os.sysconf("SC_PAGE_SIZE"))
    open_ = [pid]
    while open_:
        of = open_.pop()
        below = [child for child, (parent, _, _) in parents.items() if parent == of]
        open_ += below
        found += below
    own = Path(f"/proc/{pid}/exe").resolve()
    servers_ = [one for one in found if Path(f"/proc/{one}/exe").exists() and Path(f"/proc/{one}/exe").resolve() != own]
    return len(servers_), sum(parents[one][2] for one in servers_)
