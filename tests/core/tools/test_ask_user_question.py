"""Questions to a person: only an answer is an answer."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from toolkit_core import Answer, Question, Suspended, ToolContext
from toolkit_core.tools import ask_user_question_tool

ASK = ask_user_question_tool()


MALFORMED = cast("Any", Answer)(values=5)


class Person:
    """Answers from a list, and remembers what was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[Question]()

    async def __call__(self, question: Question) -> Any:
        self.asked.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


async def ask(person: Person | None, *questions: Any, call_id: str | None = None) -> Any:
    return await ASK.call({"questions": list(questions)}, ToolContext(ask=person, call_id=call_id))


COLOUR = {"question": "Which colour?", "options": ["red", {"label": "blue", "description": "as the sky"}]}


async def test_one_choice_comes_back_as_its_label() -> None:
    person = Person(Answer(values=("blue",)))
    result = await ask(person, COLOUR, call_id="call_1")

    assert result.data == {"answers": [{"question": "Which colour?", "values": ["blue"]}]}
    assert "blue" in result.text
    [question] = person.asked
    assert question.id == "call_1#0"
    assert [option.label for option in question.options] == ["red", "blue"]
    assert not question.multi_select


async def test_several_choices_and_own_words() -> None:
    person = Person(Answer(values=("red", "blue"), text="both"), "neither", "red")
    result = await ask(person, {**COLOUR, "multi_select": True}, COLOUR, COLOUR)
    assert result.data["answers"] == [
        {"question": "Which colour?", "values": ["red", "blue"], "text": "both"},
        {"question": "Which colour?", "values": [], "text": "neither"},
        {"question": "Which colour?", "values": ["red"]},
    ]


async def test_no_options_ask_for_own_words_whatever_was_said_of_free_text() -> None:
    person = Person("because")
    result = await ask(person, {"question": "Why?", "allow_free_text": False})
    assert person.asked[0].allow_free_text
    assert result.data["answers"] == [{"question": "Why?", "values": [], "text": "because"}]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "",
        "  ",
        Answer(),
        Answer(values=("green",)),
        Answer(values=("red", "blue")),
        5,
        {"values": ["red"]},
        MALFORMED,
    ],
)
async def test_an_empty_or_malformed_answer_is_a_dismissal_and_cancels_the_rest(answer: Any) -> None:
    person = Person("red", answer, "red")
    result = await ask(person, COLOUR, {**COLOUR, "question": "Again?"}, {**COLOUR, "question": "And again?"})

    assert not result.is_error
    assert len(person.asked) == 2
    assert result.data["answers"] == [
        {"question": "Which colour?", "values": ["red"]},
        {"question": "Again?", "cancelled": True},
        {"question": "And again?", "cancelled": True},
    ]


async def test_own_words_where_none_are_welcome_are_a_dismissal() -> None:
    result = await ask(Person("green"), {**COLOUR, "allow_free_text": False})
    assert result.data["answers"] == [{"question": "Which colour?", "cancelled": True}]


async def test_without_anybody_to_ask_the_result_says_so_and_is_no_error() -> None:
    result = await ask(None, COLOUR)
    assert not result.is_error
    assert result.data == {"unavailable": True, "reason": "nobody can be asked in this run"}


@pytest.mark.parametrize(
    "questions", [[], [COLOUR] * 5, [{"question": ""}], [{"options": ["a"]}], [{**COLOUR, "options": [5]}]]
)
async def test_no_question_five_questions_and_bad_ones_are_refused_unasked(questions: list[Any]) -> None:
    person = Person()
    result = await ask(person, *questions)
    assert result.error.code == "invalid_arguments"
    assert person.asked == []


async def test_a_flat_question_and_bare_strings_are_read() -> None:
    assert (await ASK.call({"question": "Go?", "options": ["yes", "no"]}, ToolContext(ask=Person("yes")))).data == {
        "answers": [{"question": "Go?", "values": ["yes"]}]
    }
    assert not (await ASK.call({"questions": '["Go?"]'}, ToolContext(ask=Person("yes")))).is_error


async def test_cancelling_ends_a_question_that_nobody_sees_at_once() -> None:
    class Nobody:
        async def __call__(self, question: Question) -> Any:
            await asyncio.Event().wait()

    task = asyncio.ensure_future(ASK.call({"questions": [COLOUR]}, ToolContext(ask=Nobody())))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 2)


async def test_a_port_that_suspends_the_call_is_not_swallowed() -> None:
    with pytest.raises(Suspended):
        await ask(Person(Suspended(ValueError("later"))), COLOUR)


async def test_a_port_that_breaks_is_an_internal_error_and_no_answer() -> None:
    result = await ask(Person(OSError("gone")), COLOUR)
    assert result.error.code == "internal"
