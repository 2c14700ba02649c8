"""Questions to a person, over LangGraph's `interrupt()`.

A question pauses the run; the caller of the agent sees `question_payload(...)` under `__interrupt__` and resumes
with `Command(resume=answer)`, or `Command(resume={interrupt_id: answer})` where several calls ask at once. The
paused call is then run again from its start (https://docs.langchain.com/oss/python/langgraph/interrupts).
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from toolkit_core.errors import Suspended, ToolError
from toolkit_core.limits import OPEN_ASKS_KEPT
from toolkit_core.ports.ask import Answer, Question

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

__all__ = ["SCRATCHPAD", "InterruptAsk", "answerable", "ask_once", "parse_answer", "question_payload"]

SCRATCHPAD = "__pregel_scratchpad"
_CHECKPOINTER = "__pregel_checkpointer"
"""Keys of a LangGraph task's config; without the first no graph runs, with an empty second nobody can resume."""


def answerable(config: RunnableConfig) -> bool:
    """Whether a question asked here can ever be answered: in a graph that has a checkpointer."""
    configurable = config.get("configurable", {})
    return SCRATCHPAD in configurable and configurable.get(_CHECKPOINTER, True) is not None


def question_payload(question: Question, *, tool: str, call_id: str) -> dict[str, Any]:
    """What the person's side sees of a question: plain JSON."""
    return {
        "type": "question",
        "id": question.id if question.id.startswith(call_id) else f"{call_id}:{question.id}",
        "tool": tool,
        "tool_call_id": call_id,
        "question": question.question,
        "header": question.header,
        "options": [{"label": option.label, "description": option.description} for option in question.options],
        "multi_select": question.multi_select,
        "allow_free_text": question.allow_free_text,
    }


def parse_answer(reply: object) -> Answer | str | None:
    """What a program resumed with, as an answer; None (a dismissal) for anything that is none.

    A string is an answer in own words or an option's label, a list of strings takes several options, a mapping
    has `values` and `text` (also `answer` or `message` for either).
    """
    if isinstance(reply, Answer):
        return reply
    if isinstance(reply, str):
        return reply if reply.strip() else None
    if isinstance(reply, Mapping):
        return _answer_of_mapping(cast("Mapping[str, Any]", reply))
    values = _strings(reply)
    return Answer(values) if values else None


def _answer_of_mapping(reply: Mapping[str, Any]) -> Answer | str | None:
    for key in ("answer", "message"):
        if key in reply:
            return parse_answer(reply[key])
    values = _strings(reply.get("values", ()))
    text = reply.get("text", "")
    if values is None or not isinstance(text, str) or not (values or text.strip()):
        return None
    return Answer(values, text)


def _strings(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence):
        return None
    items = tuple(cast("Sequence[object]", value))
    return cast("tuple[str, ...]", items) if all(isinstance(item, str) for item in items) else None


@dataclass(frozen=True)
class InterruptAsk:
    """The ask port of one call. A question id that is used again in the same call is told apart by its count."""

    tool: str
    call_id: str
    _asked: Counter[str] = field(default_factory=Counter[str], init=False, repr=False, compare=False)

    async def __call__(self, question: Question) -> Answer | str | None:
        """Ask by pausing the graph.

        Raises:
            Suspended: The graph pauses; the call is replayed with the answer.
            ToolError: `unavailable`, outside a graph.
        """
        payload = question_payload(question, tool=self.tool, call_id=self.call_id)
        self._asked[question.id] += 1
        if self._asked[question.id] > 1:
            payload["id"] += f"#{self._asked[question.id]}"
        return parse_answer(suspending(payload["id"], payload))


def suspending(key: str, payload: Mapping[str, Any]) -> Any:
    """`ask_once`, with LangGraph's control flow wrapped so that it passes through the core.

    Raises:
        Suspended: The graph pauses.
        ToolError: `unavailable`, outside a graph.
    """
    try:
        from langgraph.errors import GraphBubbleUp
    except ImportError as e:
        raise ToolError("nobody can be asked: langgraph is not installed", code="unavailable") from e
    try:
        return ask_once(key, payload)
    except GraphBubbleUp as e:
        raise Suspended(e) from e
    except (KeyError, RuntimeError) as e:
        raise ToolError("nobody can be asked here: no LangGraph run surrounds this call", code="unavailable") from e


@dataclass
class _Task:
    """One graph task: whose the answers so far are, and what this attempt has learned."""

    order: list[str] = field(default_factory=list[str])
    attempt: object = None
    over: list[object] = field(default_factory=list[object])
    taken: int = 0
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    open: Exception | None = None


_tasks: OrderedDict[str, _Task] = OrderedDict()
_lock = threading.Lock()


def ask_once(key: str, payload: Mapping[str, Any]) -> Any:
    """`interrupt(payload)`, whose answer belongs to `key` whatever the order of calls.

    LangGraph matches answers to the interrupts of one task by their order alone. In a hand-built `ToolNode` the
    calls of a turn share a task and run in parallel, so that a replay may ask in another order. Here a task has
    one open question at a time, its owner is remembered, and an answer that belongs to another call is put aside
    for it. A reply that is a mapping with a question's `id` is given to that question in any case.

    Raises:
        GraphInterrupt: No answer yet.
    """
    from langgraph.errors import GraphBubbleUp
    from langgraph.types import interrupt

    with _lock:
        task = _current_task()
        while key not in task.answers:
            if task.open is not None:
                raise task.open
            try:
                reply: Any = interrupt(dict(payload))
            except GraphBubbleUp as e:
                task.order[task.taken :] = [key]
                task.open = e
                raise
            _take(task, key, reply)
        return task.answers[key]


def _take(task: _Task, key: str, reply: Any) -> None:
    owner = task.order[task.taken] if task.taken < len(task.order) else key
    task.taken += 1
    named = cast("Mapping[str, Any]", reply).get("id") if isinstance(reply, Mapping) else None
    task.answers[named if isinstance(named, str) else owner] = reply


def _current_task() -> _Task:
    from langgraph.config import get_config
    from langgraph.errors import GraphInterrupt

    configurable = get_config().get("configurable", {})
    attempt = configurable[SCRATCHPAD]
    task_id = f"{configurable.get('thread_id')}|{configurable.get('checkpoint_ns')}"
    task = _tasks.setdefault(task_id, _Task())
    _tasks.move_to_end(task_id)
    while len(_tasks) > OPEN_ASKS_KEPT:
        _tasks.popitem(last=False)
    if any(attempt is ended for ended in task.over):
        # a call of an attempt that paused already; LangGraph leaves it running, and its replay asks in its stead
        raise GraphInterrupt(())
    if task.attempt is not attempt:
        task.over.append(task.attempt)
        task.attempt, task.taken, task.answers, task.open = attempt, 0, {}, None
    return task
