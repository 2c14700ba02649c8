"""Which worker of a restorable sandbox is in use: while it is being replaced, and after that failed, none is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from toolkit_core.errors import ToolError

W = TypeVar("W")
T = TypeVar("T")


class Workers(Generic[W]):
    """One worker at a time; what an earlier one answers late is refused.

    Args:
        worker: The first one.
    """

    def __init__(self, worker: W) -> None:
        self._worker: W | None = worker
        self._last = worker
        self._restoring = False
        self._epoch = 0

    @property
    def last(self) -> W:
        """The worker that was usable last, for the one thing that may be done with it: connecting anew."""
        return self._last

    def current(self) -> W:
        """The usable worker. Raises `ToolError` `unavailable`."""
        if self._worker is None:
            why = "it is being restored" if self._restoring else "its last restore failed"
            hint = "Wait for the restore." if self._restoring else "Restore a good snapshot first."
            raise ToolError(
                f"The sandbox has no usable worker: {why}. Nothing was run.",
                code="unavailable",
                hint=hint,
                retryable=self._restoring,
            )
        return self._worker

    async def ask(self, work: Callable[[W], Awaitable[T]]) -> T:
        """Have the current worker do something; its answer counts only while it is still the current one."""
        worker, epoch = self.current(), self._epoch
        try:
            answer = await work(worker)
        except Exception:
            self._check(epoch)
            raise
        self._check(epoch)
        return answer

    def _check(self, epoch: int) -> None:
        if epoch != self._epoch:
            raise ToolError(
                "The sandbox was restored meanwhile; the answer of its earlier worker was refused.",
                code="unavailable",
                hint="Look at the restored state before doing it again.",
            )

    async def replace(self, make: Callable[[], Awaitable[W]]) -> None:
        """Take another worker's service; until it is there, and where it does not come, there is none.

        Raises:
            ToolError: `unavailable`: another restore is under way; that one is not disturbed.
        """
        if self._restoring:
            raise ToolError("A restore is already in progress.", code="unavailable", hint="Wait for it to end.")
        self._restoring, self._worker = True, None
        self._epoch += 1
        try:
            self._worker = self._last = await make()
        finally:
            self._restoring = False
