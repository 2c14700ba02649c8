"""An event loop in a thread of its own, for what lives longer than the loops that call."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from toolkit_core.cleanup import finish
from toolkit_core.limits import CLEANUP_SECONDS

T = TypeVar("T")


class LoopThread:
    """Runs coroutines on one loop, whichever loop awaits them. Started on first use, anew after a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work that runs on the thread's loop; cancelled, it waits until the work has cleaned up."""
        there, here = self._running_loop(), asyncio.get_running_loop()
        done: asyncio.Future[None] = here.create_future()
        begun: list[asyncio.Task[T]] = []

        def finished(_task: asyncio.Task[T]) -> None:
            here.call_soon_threadsafe(lambda: done.done() or done.set_result(None))

        def begin() -> None:
            begun.append(there.create_task(work))
            begun[0].add_done_callback(finished)

        there.call_soon_threadsafe(begin)
        try:
            await asyncio.shield(done)
        except asyncio.CancelledError:
            there.call_soon_threadsafe(lambda: begun[0].cancel())

            async def wait() -> None:
                await done

            await finish(wait())
            raise
        return begun[0].result()

    def stop(self) -> None:
        """End the loop and its thread, if they run in this process. Blocks for a moment."""
        with self._lock:
            loop, self._loop = self._loop, None
            thread, self._thread = self._thread, None
        if loop is not None and thread is not None and self._process == os.getpid():
            loop.call_soon_threadsafe(loop.stop)
            thread.join(CLEANUP_SECONDS)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()
