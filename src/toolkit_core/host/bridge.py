"""The blocking bridge: one event loop in a daemon thread, for callers that cannot await."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from toolkit_core.limits import CLEANUP_SECONDS

T = TypeVar("T")

_log = logging.getLogger("toolkit_core")
_lock = threading.Lock()
_bridge: _Bridge | None = None


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the bridge's loop and return what it returned.

    Works in plain scripts, in threads and where another event loop runs (a notebook). The caller's context
    variables are visible to the work. Ctrl-C cancels the work and waits for its clean-up, bounded.

    Raises:
        RuntimeError: Called from the bridge's own thread, where waiting would never end.
    """
    bridge = _running_bridge()
    if threading.current_thread() is bridge.thread:
        work.close()
        raise RuntimeError(
            "a blocking call from inside a tool on the bridge would wait for itself: await the async form instead"
        )
    future = asyncio.run_coroutine_threadsafe(_outcome(work), bridge.loop)
    try:
        value, error = future.result()
    except BaseException:
        future.cancel()
        concurrent.futures.wait([future], timeout=CLEANUP_SECONDS)
        raise
    if error is not None:
        raise error
    return value  # pyright: ignore[reportReturnType]  (without an error there is a value)


async def _outcome(work: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    """The outcome as a value: SystemExit raised in a task would end the loop and hang every later caller."""
    try:
        return await work, None
    except asyncio.CancelledError as e:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return None, e
    except BaseException as e:  # noqa: BLE001 - raised again in the caller's thread
        return None, e


class _Bridge:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="toolkit-bridge", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self.loop.is_closed():
            try:
                self.loop.run_forever()
            except BaseException:  # noqa: BLE001 - a task that exits must not end everybody's loop
                _log.exception("a task on the blocking bridge tried to end its loop")


def _running_bridge() -> _Bridge:
    global _bridge
    with _lock:
        if _bridge is None or not _bridge.thread.is_alive():
            _bridge = _Bridge()
        return _bridge


def _forget() -> None:
    """After fork the thread is gone in the child, and the lock may be held by nobody."""
    global _bridge, _lock
    _bridge = None
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
