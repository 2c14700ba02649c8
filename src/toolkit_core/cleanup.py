"""Clean-up that a second cancellation does not interrupt, and that ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from toolkit_core.limits import CLEANUP_SECONDS

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
