"""Work that ends in time, and clean-up that a second cancellation does not interrupt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from toolkit_core.limits import CLEANUP_SECONDS, STOP_SECONDS

T = TypeVar("T")

_log = logging.getLogger("toolkit_core")


async def finish(work: Coroutine[Any, Any, Any], *, within_seconds: float = CLEANUP_SECONDS) -> None:
    """Run clean-up to its end, shielded from cancellation, for at most `within_seconds`.

    A cancellation that arrives meanwhile is raised again afterwards. What the work raises is logged: clean-up
    must not hide the reason that it was needed for.
    """
    task = asyncio.ensure_future(work)
    deadline = asyncio.get_running_loop().time() + within_seconds
    interrupted: asyncio.CancelledError | None = None
    while not task.done():
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            task.cancel()
            _log.error("clean-up did not end within %s s and was left", within_seconds)
            break
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError as e:
            interrupted = e
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        _log.error("clean-up failed", exc_info=error)
    if interrupted is not None:
        raise interrupted


async def run_within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """Run work in a task of its own, so that it cannot hold its caller past the time by swallowing cancellations.

    Raises:
        TimeoutError: It did not end in time and was cancelled; what does not stop even then is left and logged.
        asyncio.CancelledError: The caller was cancelled; the work was stopped first, or left in the same way.
    """
    # The outcome travels as a value: SystemExit raised in a task would end the event loop.
    task = asyncio.ensure_future(_outcome(work))
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        await finish(_ended(task), within_seconds=STOP_SECONDS)
        raise
    if not task.done():
        task.cancel()
        await finish(_ended(task), within_seconds=STOP_SECONDS)
        raise TimeoutError
    value, error = task.result()
    if error is not None:
        raise error
    return value  # pyright: ignore[reportReturnType]  (without an error there is a value)


async def _outcome(work: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    try:
        return await work, None
    except BaseException as e:  # noqa: BLE001 - raised again by run_within
        return None, e


async def _ended(task: asyncio.Task[Any]) -> None:
    await asyncio.wait({task})
