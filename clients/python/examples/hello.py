"""Joins a topic, says hello, and prints what others say. Stops after the first answer."""

import anyio

import portmoot
from portmoot import events


async def main() -> None:
    async with portmoot.connect() as me:  # PORTMOOT_URL, PORTMOOT_TOKEN, PORTMOOT_TOPIC
        print(f"here as {me.id}, with {', '.join(me.others)}", flush=True)
        await me.chat("hello from Python")
        async for event in me.events():
            if isinstance(event, events.Chat):
                print(f"{event.sender}: {portmoot.visible(event.text)}", flush=True)
                break


anyio.run(main)
