"""Blocking work in a thread of its own that an awaiting task can stop, and that has stopped before the task ends."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from toolkit_core.cleanup import finish

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

T = TypeVar("T")


class StoppedError(Exception):
    """The work was told to stop, or its time is up."""


class Stop:
    """What tells the work to end, and what must be killed then.

    Args:
        budget_seconds: After it `expired` is true.
    """

    def __init__(self, budget_seconds: float) -> None:
        self.deadline: float = time.monotonic() + budget_seconds
        self.requested: bool = False
        self._lock = threading.Lock()
        self._kills: list[Callable[[], None]] = []

    @property
    def expired(self) -> bool:
        """Whether the time is up."""
        return time.monotonic() >= self.deadline

    @contextmanager
    def within(self, seconds: float) -> Generator[None]:
        """While inside, the time is up after `seconds` already; for what is not worth all that is left."""
        before, self.deadline = self.deadline, min(self.deadline, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.deadline = before

    def check(self) -> None:
        """Raise `StoppedError` when the work has to end."""
        if self.requested or self.expired:
            raise StoppedError

    def stop(self) -> None:
        """Tell the work to end, and kill what it registered. From any thread."""
        with self._lock:
            self.requested = True
            kills = tuple(self._kills)
        for kill in kills:
            kill()

    @contextmanager
    def killing(self, kill: Callable[[], None]) -> Generator[None]:
        """While inside, `stop` calls `kill`; at once when it was called already."""
        with self._lock:
            self._kills.append(kill)
            late = self.requested
        if late:
            kill()
        try:
            yield
        finally:
            with self._lock:
                self._kills.remove(kill)


async def in_thread(work: Callable[[Stop], T], *, budget_seconds: float, name: str) -> T:
    """Run `work(stop)` in a new thread; a cancellation stops it and waits for its end before it goes on.

    A thread of its own, since a shared pool that is full would delay the search and, worse, its end.
    """
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    stop = Stop(budget_seconds)
    outcome: list[tuple[T | None, BaseException | None]] = []

    def body() -> None:
        try:
            outcome.append((work(stop), None))
        except BaseException as e:  # noqa: BLE001 - raised again in the awaiting task
            outcome.append((None, e))
        if not loop.is_closed():
            loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=body, name=f"toolkit-{name}", daemon=True).start()
    try:
        await ended.wait()
    except BaseException:
        stop.stop()
        await finish(_wait(ended))
        raise
    value, error = outcome[0]
    if error is not None:
        raise error
    return value  # pyright: ignore[reportReturnType]  (without an error there is a value)


async def _wait(ended: asyncio.Event) -> None:
    await ended.wait()
