"""Async work for LangChain's hooks that have no async form, from any thread."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a short piece of work to its end and return what it returned.

    On the bridge's own thread (an agent that was started, blocking, inside a tool) it runs in a thread of its
    own, since the bridge refuses to wait for itself.
    """
    from toolkit_core.host.bridge import run_blocking

    if threading.current_thread().name != "toolkit-bridge":
        return run_blocking(work)
    outcome: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def carry() -> None:
        import asyncio

        try:
            outcome.append(asyncio.run(work))
        except BaseException as e:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(e)

    thread = threading.Thread(target=context.run, args=(carry,), name="toolkit-hook")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
