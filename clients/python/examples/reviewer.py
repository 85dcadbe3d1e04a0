"""A reviewer by rules: approves calls of the tools that it is started with, and rejects all others with a reason.

Its participant needs the calls that it approves, and ``mcp/request:tools/call:*_proposal*`` to reject and to list.
"""

import sys

import anyio

import portmoot


async def main(*allowed: str) -> None:
    async with portmoot.connect(mode="directed+proposals") as me:

        @me.on_proposal
        async def review(proposal: portmoot.IncomingProposal) -> None:
            if proposal.tool in allowed:
                await proposal.fulfil()
            else:
                await proposal.reject(f"only {', '.join(allowed)} may be called here")
            print(f"decided about {proposal.tool} of {proposal.sender}", flush=True)

        # Those from before this program started.
        for waiting in await me.waiting():
            if waiting.may_decide and waiting.target in allowed:
                await waiting.approve()
                print(f"approved {waiting.target} of {waiting.sender}, which waited", flush=True)
        print(f"reviewing as {me.id}", flush=True)
        await anyio.sleep_forever()


anyio.run(main, *sys.argv[1:])
