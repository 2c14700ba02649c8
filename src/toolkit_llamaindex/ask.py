"""Questions to a person, over the workflow's events.

A question appears on the event stream as a `QuestionEvent`; the program answers it::

    async for event in handler.stream_events():
        if isinstance(event, QuestionEvent):
            handler.ctx.send_event(event.answer("blue"))

A `HumanResponseEvent(response="blue", question_id=event.question_id)` made by hand does the same.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from llama_index.core.workflow import HumanResponseEvent, InputRequiredEvent
from pydantic import Field

from toolkit_core.ports.ask import Answer, Question

if TYPE_CHECKING:
    from toolkit_llamaindex._run import CallSite


class QuestionEvent(InputRequiredEvent):
    """A tool asks a person, and its call waits for the answer.

    Attributes:
        question_id: Belongs to one question of one call; the answer carries it.
        question: What is asked.
        header: A short title; may be empty.
        options: The choices, each with label and description; none means own words.
        multi_select: Several choices may be taken.
        allow_free_text: An answer in own words is welcome.
        tool_name: The tool that asks.
        prefix: The question again, where programs for stock events look for it.
    """

    question_id: str
    question: str
    header: str = ""
    options: list[dict[str, str]] = Field(default_factory=list[dict[str, str]])
    multi_select: bool = False
    allow_free_text: bool = True
    tool_name: str = ""
    prefix: str = ""

    def answer(self, *values: str, text: str = "") -> HumanResponseEvent:
        """The event that answers this question: labels of options, own words, or both."""
        response: Any = {"values": list(values), "text": text}
        if len(values) == 1 and not text:
            response = values[0]
        return _response(response, self.question_id)

    def dismiss(self) -> HumanResponseEvent:
        """The event that says: no answer."""
        return _response(None, self.question_id)


def _response(response: object, question_id: str) -> HumanResponseEvent:
    fields: dict[str, Any] = {"response": response, "question_id": question_id}
    return HumanResponseEvent(**fields)


class EventAsk:
    """The ask port of one call. Questions are numbered, so that a replay asks each only once.

    Tasks that a tool starts may ask in another order when the call is replayed: a question of theirs is known by
    its text too, so that no answer goes to another question.
    """

    def __init__(self, site: CallSite, tool_name: str, timeout_seconds: float | None) -> None:
        self._site, self._tool_name, self._timeout_seconds = site, tool_name, timeout_seconds
        self._task = asyncio.current_task()
        self._numbers: Counter[str] = Counter()

    async def __call__(self, question: Question) -> Answer | str | None:
        """The answer; None when it was dismissed, made no sense, or nobody answered in time."""
        question_id = f"{self._site.wait_key}#{self._number(question)}"
        shown = QuestionEvent(
            question_id=question_id,
            question=question.question,
            header=question.header,
            options=[{"label": option.label, "description": option.description} for option in question.options],
            multi_select=question.multi_select,
            allow_free_text=question.allow_free_text,
            tool_name=self._tool_name,
            prefix=question.question,
        )
        try:
            event = await self._site.wait(
                HumanResponseEvent,
                shown=shown,
                waiter_id=question_id,
                requirements={"question_id": question_id},
                timeout_seconds=self._timeout_seconds,
            )
        except TimeoutError:
            return None
        return answer_of(event.get("response", None), question)

    def _number(self, question: Question) -> str:
        text = ""
        if asyncio.current_task() is not self._task:
            known = repr((question.question, question.header, question.options, question.multi_select))
            text = hashlib.sha256(known.encode("utf-8", "backslashreplace")).hexdigest()[:12] + "."
        self._numbers[text] += 1
        return f"{text}{self._numbers[text] - 1}"


def answer_of(response: object, question: Question) -> Answer | str | None:
    """What a response means: a label or a list of labels are choices, other text is own words, the rest nothing."""
    if isinstance(response, Mapping):
        given = cast("Mapping[str, Any]", response)
        plain = given.get("answer", given.get("message"))
        return answer_of(plain, question) if plain is not None else _answer(given.get("values"), given.get("text"))
    if isinstance(response, str):
        labels = {option.label for option in question.options}
        return Answer((response,)) if response in labels else response
    if isinstance(response, Sequence) and not isinstance(response, bytes | bytearray):
        return _answer(list(cast("Sequence[Any]", response)), "")
    return None


def _answer(values: object, text: object) -> Answer | None:
    values, text = [] if values is None else values, "" if text is None else text
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, list | tuple) or not isinstance(text, str):
        return None
    listed = cast("Sequence[Any]", values)
    return Answer(tuple(listed), text) if all(isinstance(value, str) for value in listed) else None
