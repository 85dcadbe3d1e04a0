"""Event queues of a participant, one per subscriber, bounded in number and size."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator

import anyio

from . import events

EVENTS_MAX = 1024
"""Events that wait for one subscriber. Beyond this the oldest are dropped, and :class:`events.Lagged` has their number."""
EVENTS_SIZE_MAX = 4 << 20
"""Characters of these events together, roughly. The newest is kept in any case."""


class Events(AsyncIterator[events.Event]):
    """Receives the events of a participant: ``async for event in me.events(): ...``. Ends when the participant has ended."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, events.Event]] = deque()
        self._size = 0
        self._dropped = 0
        self._ended = False
        self._wake = anyio.Event()

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> events.Event:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def next(self) -> events.Event | None:
        """Waits for the next event; ``None`` after the last one."""
        while True:
            if self._dropped:
                count, self._dropped = self._dropped, 0
                return events.Lagged(count)
            if self._waiting:
                size, event = self._waiting.popleft()
                self._size -= size
                return event
            if self._ended:
                return None
            self._wake = anyio.Event()
            await self._wake.wait()

    def _push(self, event: events.Event) -> None:
        size = events.size(event)
        self._waiting.append((size, event))
        self._size += size
        while len(self._waiting) > EVENTS_MAX or (self._size > EVENTS_SIZE_MAX and len(self._waiting) > 1):
            dropped, _ = self._waiting.popleft()
            self._size -= dropped
            self._dropped += 1
        self._wake.set()

    def _end(self) -> None:
        self._ended = True
        self._wake.set()
