"""An agent that may only propose: it proposes one tool call and waits for the outcome.

``untrusted_agent.py TARGET TOOL [ARGUMENTS as JSON]``. Its participant needs ``mcp/proposal:tools/call``. With
``mcp/request:tools/call`` the same program makes the call itself.
"""

import json
import sys

import anyio

import portmoot


async def main() -> None:
    target, tool, *arguments = sys.argv[1:]
    params = {"name": tool, "arguments": json.loads("".join(arguments) or "{}")}
    async with portmoot.connect() as agent:
        if agent.call_mode(target, "tools/call", params) == "proposal":
            proposal = await agent.propose(target, "tools/call", params)
            print(f"proposed as {proposal.id}; waiting for a reviewer", flush=True)
            result = await proposal.outcome()
        else:
            result = await agent.call(target, "tools/call", params)
        print(json.dumps(result))


try:
    anyio.run(main)
except portmoot.PortmootError as why:
    sys.exit(portmoot.visible(str(why)))
