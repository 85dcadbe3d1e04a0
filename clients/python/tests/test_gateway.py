"""The reviewer by rules before a real gateway: the program that ``PORTMOOT_PROGRAM`` names. The project's own tests name it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

PROGRAM = os.environ.get("PORTMOOT_PROGRAM", "")
FOLDER = Path(__file__).parents[1]
CONFIG = """[participants.worker]
token_env = "WORKER"
capabilities = ["mcp/response:*"]
serves = true
[participants.agent]
token_env = "AGENT"
capabilities = ["mcp/proposal:*"]
[participants.boss]
token_env = "BOSS"
capabilities = ["mcp/*"]
[topics.main]
rules = "gateway.toml"
[server]
data_dir = "data"
"""
# A rule that leaves proposals to people, for the gateway and for the reviewer: both explain it.
ASKING = """[[rule]]
id = "ask"
author = "boss"
decision = "ask"
kind = "mcp/request:tools/call:echo"
to = "worker"
proposers = ["ag*", "*x"]
rate = "100/h"
[rule.when]
"/text" = { one_of = ["maybe", "p\u00e9rhaps"] }
"""
REJECTING = """[[rule]]
id = "no"
author = "boss"
decision = "reject"
kind = "mcp/request:tools/call"
proposers = ["*"]
[rule.when]
"/text" = { equals = "no" }
"""
APPROVING = """[[rule]]
id = "yes"
author = "boss"
decision = "approve"
kind = "mcp/request:tools/call:echo"
to = "worker"
proposers = ["agent"]
DIGESTS
expires = 2999-01-01T00:00:00Z
uses = 1
[rule.when]
"/text" = { one_of = ["hello", "Maybe"] }
"""

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not PROGRAM, reason="PORTMOOT_PROGRAM names no program")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def token(who: str) -> str:
    return f"token-of-the-participant-{who}"


class Lines:
    """The lines that a program prints."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        self.process = process
        self._stream = TextReceiveStream(process.stdout)
        self._rest = ""
        self.seen: list[str] = []

    async def next(self) -> str | None:
        while "\n" not in self._rest:
            try:
                self._rest += await self._stream.receive()
            except anyio.EndOfStream:
                return None
        line, self._rest = self._rest.split("\n", 1)
        self.seen.append(line)
        return line

    async def until(self, is_wanted: Callable[[str], bool]) -> str:
        while (line := await self.next()) is not None:
            if is_wanted(line):
                return line
        raise AssertionError("\n".join(["it has ended, after:", *self.seen]))

    async def with_text(self, text: str) -> str:
        return await self.until(lambda line: text in line)

    async def end(self) -> int:
        """Its exit code; all lines are in ``seen``."""
        while await self.next() is not None:
            pass
        return await self.process.wait()


@asynccontextmanager
async def running(command: list[str], folder: Path, **environment: str) -> AsyncIterator[Lines]:
    env = {"PATH": os.defpath, "HOME": str(folder), **environment}
    process = await anyio.open_process(command, cwd=folder, env=env, stderr=subprocess.STDOUT)
    try:
        yield Lines(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.aclose()


class Stage:
    """A gateway with a server of the topic, and programs that take part."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url = folder, url

    def as_participant(self, who: str, script: str, *args: str) -> Any:
        environment = {"PYTHONPATH": str(FOLDER / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, str(FOLDER / "examples" / script), *args]
        return running(command, self.folder, PORTMOOT_URL=self.url, PORTMOOT_TOKEN=token(who), **environment)

    def propose(self, text: str) -> Any:
        return self.as_participant("agent", "untrusted_agent.py", "worker", "echo", json.dumps({"text": text}))

    def asked(self, *words: str) -> Any:
        """What the program prints to the reviewer who asks the gateway."""
        ran = subprocess.run(
            [PROGRAM, *words, "--json", "--url", self.url, "--token", token("boss")],
            env={"HOME": str(self.folder)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    (folder / "portmoot.toml").write_text(CONFIG, encoding="utf-8")
    (folder / "gateway.toml").write_text(ASKING, encoding="utf-8")
    tokens = {who.upper(): token(who) for who in ("worker", "agent", "boss")}
    serve = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--config", "portmoot.toml"]
    with anyio.fail_after(60):
        async with AsyncExitStack() as stack:
            gateway = await stack.enter_async_context(running(serve, folder, **tokens))
            line = await gateway.with_text("/mcp")
            there = Stage(folder, "http://" + line.split("http://")[1].split("/mcp")[0])
            worker = await stack.enter_async_context(there.as_participant("worker", "echo_server.py"))
            await worker.with_text("serving as worker")
            yield there


async def left_to_people(there: Stage, reviewer: Lines) -> str:
    """A call of which the reviewer says what the gateway says; returns the digests that it names."""
    async with there.propose("hello") as agent:
        await agent.with_text("; waiting for a reviewer")
        await reviewer.with_text("not decided about echo of agent: left to people")
        [waiting] = there.asked("proposals", "ls")["proposals"]
        explained = there.asked("rules", "explain", waiting["id"])
        definition, server = [await reviewer.next() for _ in range(2)]
        assert definition == f'definition = "{explained["definition"]}"'
        [asking] = explained["rules"]
        assert await reviewer.with_text(f"{asking['rule']} ") == "ask.1 does not decide it (it would ask)"
        for check in asking["checks"]:
            said = f"  {check['holds']:<8} {check['asked']}: {check['found']}"
            line = await reviewer.next()
            # At another second.
            assert line == said or (check["asked"] == "it has no end" and str(line).startswith("  held     it has no end: it is 2"))
        return f"{definition}\n{server}"


async def test_it_decides_by_rules_and_says_what_the_gateway_says(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(REJECTING + ASKING, encoding="utf-8")
    async with stage(tmp_path) as there:
        async with there.as_participant("boss", "reviewer.py", "--rules", str(rules)) as reviewer:
            await reviewer.with_text("reviewing as boss")
            async with there.propose("no") as agent:
                assert await agent.end() == 1 and "no participant may call" in agent.seen[-1], agent.seen
            await reviewer.with_text("decided about echo of agent: by no.1: rejected")
            digests = await left_to_people(there, reviewer)
        # As the README shows: the digests that it printed are those of a rule that approves the call, once.
        rules.write_text(REJECTING + ASKING + APPROVING.replace("DIGESTS", digests), encoding="utf-8")
        async with there.as_participant("boss", "reviewer.py", "--rules", str(rules)) as reviewer:
            await reviewer.with_text("left to people echo of agent, which waited")
            await reviewer.with_text("reviewing as boss")
            async with there.propose("hello") as agent:
                assert await agent.end() == 0, agent.seen
                assert json.loads(agent.seen[-1])["content"][0]["text"] == "hello"
            await reviewer.with_text("decided about echo of agent: by yes.1: approved, answered")
            # The budget is spent. Another spelling may be the text of which a rule asks.
            unclear = '  unclear  text is "maybe" or "p\u00e9rhaps": text is "Maybe"'
            for text, why in [("hello", "  failed   used less than 1 times: used 1 times"), ("Maybe", unclear)]:
                async with there.propose(text) as agent:
                    await agent.with_text("; waiting for a reviewer")
                    await reviewer.with_text("not decided about echo of agent: left to people")
                    await reviewer.with_text(why)
