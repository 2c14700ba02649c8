"""Where a call stands in a workflow: the session, the call's id, and waiting for a person."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from llama_index.core.workflow import Context, Event

from toolkit_core.errors import Suspended
from toolkit_core.schema import plain_json
from toolkit_llamaindex._private import is_waiting, step_now, waiters_of, work_item_of
from toolkit_llamaindex._replay import Execution, answered_waiters, memory_of, own_key

if TYPE_CHECKING:
    from collections.abc import Mapping

_log = logging.getLogger("toolkit_llamaindex")

EventT = TypeVar("EventT", bound=Event)


@dataclass(frozen=True)
class CallSite:
    """One call of a tool, as the framework knows it.

    Attributes:
        ctx: The workflow's context; None outside of a workflow.
        session_id: What the program stored under "session_id" in `ctx.store`.
        call_id: The id of the model's tool call.
        wait_key: Starts the ids of all that this call waits for. The same when the step is replayed, different
            for every other call of the run.
        execution: This execution of the step; None outside of a step, where nothing can be waited for.
    """

    ctx: Context[Any] | None = None
    session_id: str | None = None
    call_id: str | None = None
    wait_key: str = ""
    execution: Execution | None = None

    @property
    def in_step(self) -> bool:
        """Whether the call can wait for events."""
        return self.execution is not None

    async def wait(
        self,
        event_type: type[EventT],
        *,
        shown: Event,
        waiter_id: str,
        requirements: Mapping[str, Any],
        timeout_seconds: float | None,
    ) -> EventT:
        """Show an event on the stream and wait for its answer. The workflow replays the step with it.

        Raises:
            Suspended: There is no answer yet; the step has to be left.
            TimeoutError: Nobody answered in time.
        """
        assert self.execution is not None  # noqa: S101 - callers look at in_step first
        try:
            answer = await self.execution.ctx.wait_for_event(
                event_type,
                waiter_event=shown,
                waiter_id=waiter_id,
                requirements=dict(requirements),
                timeout=timeout_seconds,
            )
        except TimeoutError:
            raise
        except Exception as e:
            if not is_waiting(e):
                raise
            kept = await self.execution.recall(waiter_id)
            if not isinstance(kept, event_type):
                raise Suspended(e) from None
            return kept
        self.execution.remember(waiter_id, answer)
        return answer

    def waits_already(self, waiter_id: str) -> bool:
        """Whether this call has been suspended at that place before."""
        if self.execution is None:
            return False
        return self.execution.has_answer(waiter_id) or any(
            waiter.waiter_id == waiter_id for waiter in waiters_of(self.execution.step)
        )


async def call_site(ctx: Context[Any] | None, tool_name: str, arguments: Mapping[str, Any]) -> CallSite:
    """What the framework says of the call that runs now."""
    if ctx is None:
        return CallSite()
    session_id, step = await stored_session_id(ctx), step_now()
    tool_id = getattr(getattr(step, "event", None), "tool_id", None)
    call_id = tool_id if isinstance(tool_id, str) and tool_id else None
    if step is None:
        return CallSite(ctx, session_id, call_id)
    one_call = isinstance(tool_id, str)  # the step of an agent, which makes this call and no other
    item = work_item_of(step) if one_call else ""
    named = call_id if call_id != tool_name else None  # some providers give a call the tool's name for an id
    key = named or f"{tool_name}@{work_item_of(step) or 'step'}:{_digest(arguments)}"
    if item:
        key = own_key(memory_of(ctx), waiters_of(step), key, item)
    execution = Execution(ctx, step, item, key, answered_waiters(waiters_of(step), key))
    return CallSite(ctx, session_id, call_id, key, execution)


def _digest(arguments: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(plain_json(arguments), sort_keys=True)
    except TypeError:
        text = ""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]


async def stored_session_id(ctx: Context[Any] | None) -> str | None:
    """What the program stored under "session_id"."""
    if ctx is None:
        return None
    try:
        stored = await ctx.store.get("session_id", default=None)
    except Exception:  # noqa: BLE001 - a store with a typed state may refuse the name; the set's identity stands in
        _log.debug("the workflow's store has no session_id", exc_info=True)
        return None
    return None if stored is None else str(stored)
