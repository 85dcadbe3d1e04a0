"""A server on stdio that tries what its arguments say, and tells what came of it. It needs no package."""

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time

LIBC = ctypes.CDLL(None, use_errno=True)


def ptrace(pid):
    if LIBC.ptrace(16, int(pid), 0, 0) < 0:  # PTRACE_ATTACH
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    LIBC.ptrace(17, int(pid), 0, 0)


def read(path):
    with open(path, "rb") as file:
        return file.read(16).decode("latin1")


def write(path):
    with open(path, "w") as file:
        file.write("written")


def descriptors(pid):
    return [read(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]


def spread(count):
    """Some processes that have left the session of the server. They never multiply: other programs share the machine."""
    count = min(int(count), 24)
    script = f"for i in $(seq {count}); do setsid sh -c 'while true; do sleep 1; done' & done; wait"
    subprocess.Popen(["sh", "-c", script])
    time.sleep(60)


def scratch(_):
    with tempfile.NamedTemporaryFile("w", delete=False) as file:
        file.write("x")
    return os.path.dirname(file.name)


def memory(size):
    return len(bytearray(int(size)))


def files(count):
    return len([open("/dev/null") for _ in range(int(count))])


def burn(_):
    while True:
        pass


def status(name):
    with open("/proc/self/status") as file:
        return next(line.split()[1] for line in file if line.startswith(f"{name}:"))


def abstract(name):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(f"\0{name}")


def limit(pid):
    """Sets a limit of a process to what it is."""
    resource.prlimit(int(pid), resource.RLIMIT_FSIZE, resource.prlimit(int(pid), resource.RLIMIT_FSIZE))


def renice(pid):
    os.setpriority(os.PRIO_PROCESS, int(pid), os.getpriority(os.PRIO_PROCESS, int(pid)))


def schedule(pid):
    os.sched_setscheduler(int(pid), os.SCHED_OTHER, os.sched_param(0))


def device(path):
    os.mknod(path, 0o600 | 0o020000, os.makedev(1, 1))


TRIALS = {
    "ptrace": ptrace,
    "read": read,
    "write": write,
    "list": lambda path: len(os.listdir(path)),
    "truncate": lambda path: os.truncate(path, 0),
    "remove": os.remove,
    "link": lambda path: os.link(path, os.path.join(tempfile.gettempdir(), "linked")),
    "run": lambda path: subprocess.run([path], check=True, capture_output=True).returncode,
    "descriptors": descriptors,
    "memory_of": lambda pid: read(f"/proc/{pid}/mem"),
    "environment_of": lambda pid: read(f"/proc/{pid}/environ"),
    "kill": lambda pid: os.kill(int(pid), signal.SIGCONT),
    "device": device,
    "limit": limit,
    "renice": renice,
    "schedule": schedule,
    "abstract": abstract,
    "scratch": scratch,
    "spread": spread,
    "processes": lambda _: resource.getrlimit(resource.RLIMIT_NPROC)[1],
    "memory": memory,
    "files": files,
    "burn": burn,
    "status": status,
    "core": lambda _: resource.getrlimit(resource.RLIMIT_CORE)[1],
    "pid": lambda _: os.getpid(),
    "parent": lambda _: os.getppid(),
}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    message = json.loads(line)
    request, method = message.get("id"), message.get("method")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        info = {"name": "prober", "version": "1"}
        send({"id": request, "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TRIALS]
        send({"id": request, "result": {"tools": tools}})
    elif method == "tools/call":
        arguments = message["params"].get("arguments", {})
        try:
            said, failed = TRIALS[message["params"]["name"]](arguments.get("of")), False
        except Exception as error:
            said, failed = type(error).__name__, True
        result = {"content": [{"type": "text", "text": str(said)}], "isError": failed}
        send({"id": request, "result": result})
    elif request is not None:
        send({"id": request, "error": {"code": -32601, "message": "method not found"}})
