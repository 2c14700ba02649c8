"""Where a call stands in a workflow: the session, the call's id, and waiting for a person."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from llama_index.core.workflow import Context, Event

from toolkit_core.errors import Suspended
from toolkit_core.schema import plain_json

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
        in_step: Whether the call can wait for events.
    """

    ctx: Context[Any] | None = None
    session_id: str | None = None
    call_id: str | None = None
    wait_key: str = ""
    in_step: bool = False

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
        assert self.ctx is not None  # noqa: S101 - callers look at in_step first
        try:
            return await self.ctx.wait_for_event(
                event_type,
                waiter_event=shown,
                waiter_id=waiter_id,
                requirements=dict(requirements),
                timeout=timeout_seconds,
            )
        except TimeoutError:
            raise
        except Exception as e:
            if is_waiting(e):
                raise Suspended(e) from None
            raise

    def waits_already(self, waiter_id: str) -> bool:
        """Whether this call has been suspended at that place before."""
        state = getattr(_step_state(), "state", None)
        return any(waiter.waiter_id == waiter_id for waiter in getattr(state, "collected_waiters", ()))


async def call_site(ctx: Context[Any] | None, tool_name: str, arguments: Mapping[str, Any]) -> CallSite:
    """What the framework says of the call that runs now."""
    if ctx is None:
        return CallSite()
    step = _step_state()
    event = getattr(step, "event", None)
    tool_id = getattr(event, "tool_id", None)
    call_id = tool_id if isinstance(tool_id, str) and tool_id else None
    item = getattr(getattr(step, "state", None), "work_item_id", None)
    return CallSite(
        ctx=ctx,
        session_id=await _session_id(ctx),
        call_id=call_id,
        wait_key=_wait_key(call_id, tool_name, item, arguments),
        in_step=step is not None,
    )


def is_waiting(error: BaseException) -> bool:
    """Whether the workflow raised it to suspend the step."""
    try:
        from workflows.runtime.types.results import WaitingForEvent
    except ImportError:
        return type(error).__name__ == "WaitingForEvent"
    return isinstance(error, WaitingForEvent)


def _wait_key(call_id: str | None, tool_name: str, item: object, arguments: Mapping[str, Any]) -> str:
    """The call's id where it names the call.

    Some providers give a call the tool's name for an id, and a step of one's own has no tool call: then the
    step's work item and the arguments tell two calls apart.
    """
    if call_id is not None and call_id != tool_name:
        return call_id
    try:
        text = json.dumps(plain_json(arguments), sort_keys=True)
    except TypeError:
        text = tool_name
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
    return f"{tool_name}@{item or 'call'}:{digest}"


async def _session_id(ctx: Context[Any]) -> str | None:
    try:
        stored = await ctx.store.get("session_id", default=None)
    except Exception:  # a store with a typed state may refuse the name; the set's identity stands in
        _log.debug("the workflow's store has no session_id", exc_info=True)
        return None
    return None if stored is None else str(stored)


def _step_state() -> Any:
    """The step that runs now; None outside of a step. The name is private to llama-index-workflows."""
    try:
        from workflows.runtime.types.results import StepWorkerStateContextVar

        return StepWorkerStateContextVar.get(None)
    except (ImportError, LookupError, TypeError):
        return None
