"""Taking turns across event loops and threads: one holder a key, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Literal

_LANES: Final = 256

_Fate = Literal["entered", "called", "abandoned"]


class _Ticket:
    """One waiter. Who decides its fate first wins: itself at the head, its predecessor, or its cancellation."""

    def __init__(self) -> None:
        self._fates: deque[_Fate] = deque()
        self._loop = asyncio.get_running_loop()
        self.called: asyncio.Future[None] = self._loop.create_future()

    def decide(self, fate: _Fate) -> _Fate:
        self._fates.append(fate)
        return self._fates[0]

    def call(self) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:  # its loop is closed: nobody waits any more
            return False
        return True

    def _wake(self) -> None:
        if not self.called.done():
            self.called.set_result(None)


class Turns:
    """Serialises work on the same key, whatever loop or thread it runs on.

    Keys are spread over a fixed number of lanes, so that nothing grows; two keys of one lane wait for each
    other, which costs time and nothing else, since nobody holds two turns. It needs no lock: `deque.append`
    and `popleft` are atomic (docs.python.org/3/library/collections.html#collections.deque).
    """

    def __init__(self) -> None:
        self._lanes: tuple[deque[_Ticket], ...] = tuple(deque() for _ in range(_LANES))

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncGenerator[None]:
        """Hold the key's turn inside the `async with`."""
        lane = self._lanes[hash(key) % _LANES]
        ticket = _Ticket()
        lane.append(ticket)
        if lane[0] is not ticket or ticket.decide("entered") != "entered":
            await _wait(lane, ticket)
        try:
            yield
        finally:
            _end_turn(lane)

    def forget(self) -> None:
        """Drop all turns: in a forked child nobody is left to end them."""
        for lane in self._lanes:
            lane.clear()


async def _wait(lane: deque[_Ticket], ticket: _Ticket) -> None:
    try:
        await ticket.called
    except BaseException:
        if ticket.decide("abandoned") == "called":  # handed over at the same moment
            _end_turn(lane)
        raise


def _end_turn(lane: deque[_Ticket]) -> None:
    """Leave the head of the lane and call the next one that still waits."""
    if lane:
        lane.popleft()
    while lane:
        following = lane[0]
        fate = following.decide("called")
        if fate == "entered" or (fate == "called" and following.call()):
            return
        lane.popleft()
