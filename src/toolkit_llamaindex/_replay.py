"""Calls that wait are replayed by the workflow; here each still runs to its end once.

An answer makes the workflow run the step again from its start. It also does so for a second answer to the same
question (a double click), and for a context that was restored, where the restored wait and an early answer each
start the step. Without care the tool would run twice, or an answer would be lost.

An execution that must not go on is parked: it waits for an event that nobody sends, so that it leaves no result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

from llama_index.core.workflow import Context, Event

from toolkit_core.errors import Suspended
from toolkit_llamaindex._private import delete_waiter

if TYPE_CHECKING:
    from collections.abc import Iterable


class ParkedEvent(Event):
    """Never sent."""


@dataclass
class RunMemory:
    """What one run has seen of its calls that wait; it goes when the run's store goes.

    Attributes:
        answers: Answers by work item and waiter: two calls of a run may have one id.
        started: Work items with the answers that they were started with.
        done: Work items that have ended.
        owners: The work item that waits under a call's id, as long as it runs.
        parked: How many executions are parked.
    """

    answers: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    started: set[tuple[str, frozenset[str]]] = field(default_factory=set[tuple[str, frozenset[str]]])
    done: set[str] = field(default_factory=set[str])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    parked: int = 0


_runs: WeakKeyDictionary[Any, RunMemory] = WeakKeyDictionary()


def memory_of(ctx: Context[Any]) -> RunMemory:
    """The memory of the run that the context belongs to."""
    try:
        return _runs.setdefault(ctx.store, RunMemory())
    except TypeError:  # a store that cannot be referred to weakly: each call stands alone
        return RunMemory()


@dataclass(frozen=True)
class Execution:
    """One execution of a call's step.

    Attributes:
        ctx: The workflow's context.
        step: The private state of the step, None where it could not be had.
        item: The work item, the same for every execution of one call; "" in a step of one's own, which may make
            several calls.
        key: Starts the ids of the call's waiters.
        answered: Ids of the waiters of this call whose wait is over.
    """

    ctx: Context[Any]
    step: Any
    item: str
    key: str
    answered: frozenset[str]

    @property
    def memory(self) -> RunMemory:
        """The memory of the run."""
        return memory_of(self.ctx)

    async def begin(self) -> None:
        """Go on, or park where an execution with the same answers has started, or the call has ended.

        Raises:
            Suspended: Parked.
        """
        if not self.item:
            return
        key = (self.item, self.answered)
        if self.item in self.memory.done or (self.answered and key in self.memory.started):
            await self.park()
        if self.answered:
            self.memory.started.add(key)

    def end(self) -> None:
        """The call has its result."""
        if self.item and self.answered:
            self.memory.done.add(self.item)
        if self.memory.owners.get(self.key) == self.item:
            del self.memory.owners[self.key]

    def remember(self, waiter_id: str, answer: Event) -> None:
        """Keep an answer until the run ends: the workflow can lose it when a restored wait is renewed."""
        if self.item:
            self.memory.answers[self.item, waiter_id] = answer

    def has_answer(self, waiter_id: str) -> bool:
        """Whether an execution of this call had the answer."""
        return (self.item, waiter_id) in self.memory.answers

    async def recall(self, waiter_id: str) -> Event | None:
        """The answer that the workflow lost; None where there was none yet.

        Raises:
            Suspended: Parked, since the execution that this answer started carries on.
        """
        answer = self.memory.answers.get((self.item, waiter_id))
        if answer is None:
            return None
        if not self.answered or self.item in self.memory.done:
            await self.park()
        delete_waiter(self.step, waiter_id)
        return answer

    async def park(self) -> NoReturn:
        """Leave this execution for good.

        Raises:
            Suspended: Always.
        """
        self.memory.parked += 1
        try:
            await self.ctx.wait_for_event(
                ParkedEvent, waiter_id=f"{self.item}#parked{self.memory.parked}", timeout=None
            )
        except Exception as e:  # noqa: BLE001 - the workflow suspends a step with an exception of its own
            raise Suspended(e) from None
        raise AssertionError("a parked step goes on")


def own_key(memory: RunMemory, waiters: Iterable[Any], call_id: str, item: str) -> str:
    """The call's id, or one of its own where another call under way has the same id (some servers number badly)."""
    for waiter in waiters:
        if getattr(waiter, "work_item_id", None) == item and not waiter.waiter_id.startswith(f"{item}#parked"):
            return waiter.waiter_id.rpartition("#")[0]
    return call_id if memory.owners.setdefault(call_id, item) == item else f"{call_id}~{item}"


def answered_waiters(waiters: Iterable[Any], wait_key: str) -> frozenset[str]:
    """Ids of a call's waiters whose wait is over."""
    return frozenset(
        waiter.waiter_id
        for waiter in waiters
        if waiter.waiter_id.startswith(f"{wait_key}#")
        and (waiter.resolved_event is not None or getattr(waiter, "timed_out", False))
    )
