"""Work for a thread of the running loop's pool, which is begun at once or never."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def begin_in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Begin work in a thread, with the caller's context variables.

    Raises:
        RuntimeError: The system gives no further thread. The pool keeps such work in its queue all the same
            (concurrent.futures.ThreadPoolExecutor.submit); it is not done when a thread comes by later.
    """
    refused = False

    def guarded() -> T:
        if refused:
            raise asyncio.CancelledError
        return work()

    try:
        return asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, guarded)
    except RuntimeError:
        refused = True
        raise
