"""What LlamaIndex's workflows keep to themselves and calls that wait need; each name may be gone in a later release.

Without them tools still run; then a call has no id, and questions of parallel calls with equal arguments could
not be told apart.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.workflow import Context

if TYPE_CHECKING:
    from collections.abc import Sequence


def _name(name: str) -> Any:
    try:
        return getattr(importlib.import_module("workflows.runtime.types.results"), name, None)
    except ImportError:
        return None


def step_now() -> Any:
    """The state of the step that runs now; None outside of a step."""
    variable = _name("StepWorkerStateContextVar")
    return None if variable is None else variable.get(None)


def context_now() -> Context[Any] | None:
    """The context of the step that runs now; None outside of a step."""
    variable = _name("InternalContextVar")
    reference = None if variable is None else variable.get(None)
    ctx = None if reference is None else reference()
    return cast("Context[Any]", ctx) if isinstance(ctx, Context) else None


def waiters_of(step: Any) -> Sequence[Any]:
    """What all calls of a step wait for."""
    return getattr(getattr(step, "state", None), "collected_waiters", ())


def work_item_of(step: Any) -> str:
    """The same for every execution of one call; "" where it is unknown."""
    return getattr(getattr(step, "state", None), "work_item_id", None) or ""


def is_waiting(error: BaseException) -> bool:
    """Whether the workflow raised it to suspend the step."""
    waiting = _name("WaitingForEvent")
    return type(error).__name__ == "WaitingForEvent" if waiting is None else isinstance(error, waiting)


def delete_waiter(step: Any, waiter_id: str) -> None:
    """End a wait, as the workflow itself does once the answer was handed over."""
    command = _name("DeleteWaiter")
    returns = getattr(step, "returns", None)
    if command is not None and returns is not None:
        returns.return_values.append(command(waiter_id=waiter_id))
