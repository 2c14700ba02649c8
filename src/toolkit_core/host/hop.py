"""One hop into a worker thread, and a cancellation that waits until the thread has let go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from toolkit_core.cleanup import finish
from toolkit_core.worker_threads import begin_in_thread

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - no error: the call was cancelled
    """Raised in the thread once its call was cancelled."""


class Stop:
    """Tells the work in a thread that its call was cancelled."""

    def __init__(self) -> None:
        self._requested = False

    def request(self) -> None:
        """Ask the work to end."""
        self._requested = True

    def check(self) -> None:
        """Raise `Stopped` once the call was cancelled; called between blocks."""
        if self._requested:
            raise Stopped


async def in_thread(work: Callable[[Stop], T]) -> T:
    """Run blocking work in a worker thread of the running loop.

    Raises:
        asyncio.CancelledError: The call was cancelled; the thread has ended its work (bounded by
            `CLEANUP_SECONDS`), so that no descriptor of it is open any more.
    """
    stop = Stop()

    def guarded() -> T:
        stop.check()  # the cancellation may come before a thread is free
        return work(stop)

    future = begin_in_thread(guarded)
    try:
        await asyncio.wait({future})
    except asyncio.CancelledError:
        stop.request()
        future.add_done_callback(_seen)
        await finish(_ended(future))
        raise
    return future.result()


async def _ended(future: asyncio.Future[T]) -> None:
    await asyncio.wait({future})


def _seen(future: asyncio.Future[T]) -> None:
    """What a cancelled call raised concerns nobody, however late it comes."""
    if not future.cancelled():
        future.exception()
