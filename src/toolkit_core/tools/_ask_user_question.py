"""ask_user_question: put questions to a person, one at a time, through the context's ask port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, cast

from pydantic import Field
from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.ports.ask import Answer, Option, Question
from toolkit_core.result import ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolkit_core.context import ToolContext
    from toolkit_core.tool import Siblings, Tool


class OptionArguments(Arguments):
    """One choice."""

    label: str = Field(min_length=1, description="The choice, as the person sees it and as it comes back.")
    description: str = Field(default="", description="What the choice means.")


class QuestionArguments(Arguments):
    """One question."""

    question: str = Field(min_length=1, description="What is asked.")
    header: str = Field(default="", description="A short title.")
    options: list[OptionArguments] = Field(
        default_factory=list[OptionArguments], description="The choices; none asks for an answer in own words."
    )
    multi_select: bool = Field(default=False, description="Several choices may be taken.")
    allow_free_text: bool = Field(default=True, description="An answer in own words is welcome.")


class AskArguments(Arguments):
    """What ask_user_question takes."""

    questions: list[QuestionArguments] = Field(min_length=1, max_length=4, description="1 to 4 questions.")


class AnswerData(TypedDict):
    """One answer: `values` and perhaps `text`, or `cancelled`."""

    question: str
    values: NotRequired[list[str]]
    text: NotRequired[str]
    cancelled: NotRequired[bool]


class AskData(TypedDict):
    """Either the answers, or that nobody can be asked and why."""

    answers: NotRequired[list[AnswerData]]
    unavailable: NotRequired[bool]
    reason: NotRequired[str]


def ask_user_question_tool(
    *, name: str = "ask_user_question", description: str | None = None, siblings: Collection[str] | None = None
) -> Tool[AskData]:
    """Questions to whoever answers `context.ask`; without a port the result says that nobody can be asked.

    A dismissed question cancels those after it, which are not asked. An empty or malformed answer is a
    dismissal: approving the call is not an answer.
    """
    return port_tool(
        AskArguments,
        _ask_all,
        kind="ask_user_question",
        describe=_describe,
        payload=AskData,
        effects=Effects(reads=True),
        rearrange=_rearrange,
        subject=_subject,
        name=name,
        description=description,
        siblings=siblings,
    )


def _describe(siblings: Siblings) -> str:
    return (
        "Ask the user 1 to 4 questions and wait for the answers. Each question has options to choose from, or asks "
        "for own words; with multi_select several options may be taken, and with allow_free_text an answer in own "
        "words may come instead. Questions are asked in order; when one is dismissed, it and the rest are cancelled. "
        "Where nobody can answer, the result says so."
    )


def _rearrange(arguments: dict[str, Any]) -> dict[str, Any]:
    """One question flat, and options as bare strings: both are common."""
    if "questions" not in arguments and "question" in arguments:
        return {"questions": [_with_labels(arguments)]}
    questions = arguments.get("questions")
    if isinstance(questions, dict):
        questions = [cast("dict[str, Any]", questions)]
    if isinstance(questions, list):
        return {**arguments, "questions": [_with_labels(question) for question in cast("list[Any]", questions)]}
    return arguments


def _with_labels(question: Any) -> Any:
    if isinstance(question, str):
        return {"question": question}
    if not isinstance(question, dict):
        return question
    asked = cast("dict[str, Any]", question)
    options = asked.get("options")
    if not isinstance(options, list):
        return asked
    labelled = [{"label": option} if isinstance(option, str) else option for option in cast("list[Any]", options)]
    return {**asked, "options": labelled}


async def _subject(arguments: AskArguments) -> str:
    return arguments.questions[0].question


async def _ask_all(arguments: AskArguments, context: ToolContext) -> ToolResult[AskData]:
    ask = context.ask
    if ask is None:
        reason = "nobody can be asked in this run"
        data: AskData = {"unavailable": True, "reason": reason}
        return ToolResult.ok(f"No answer: {reason}. Decide with what is known, and say what was assumed.", data)
    answers: list[AnswerData] = []
    for number, asked in enumerate(arguments.questions):
        question = _question(f"{context.call_id or 'question'}#{number}", asked)
        answer = _checked(await ask(question), question)
        if answer is None:
            answers += [AnswerData(question=left.question, cancelled=True) for left in arguments.questions[number:]]
            break
        answers.append(_answered(asked.question, answer))
    return ToolResult.ok("\n\n".join(map(_text, answers)), {"answers": answers})


def _question(question_id: str, asked: QuestionArguments) -> Question:
    options = tuple(Option(option.label, option.description) for option in asked.options)
    return Question(
        id=question_id,
        question=asked.question,
        header=asked.header,
        options=options,
        multi_select=asked.multi_select and len(options) > 1,
        allow_free_text=asked.allow_free_text or not options,
    )


def _checked(answer: object, question: Question) -> Answer | None:
    """The answer where it answers the question, else None: nothing is guessed from a malformed one."""
    labels = [option.label for option in question.options]
    if isinstance(answer, str):
        answer = Answer(values=(answer,)) if answer in labels else Answer(text=answer)
    if not isinstance(answer, Answer):
        return None
    values, text = cast("object", answer.values), cast("object", answer.text) or ""  # None: no own words
    if not isinstance(values, tuple | list) or not isinstance(text, str):
        return None
    taken = tuple(cast("tuple[object, ...]", values))
    fits = all(value in labels for value in taken) and (len(taken) <= 1 or question.multi_select)
    own = text.strip()
    if not fits or not (taken or own) or (own and not question.allow_free_text):
        return None
    return Answer(cast("tuple[str, ...]", taken), text if own else "")


def _answered(question: str, answer: Answer) -> AnswerData:
    data: AnswerData = {"question": question, "values": list(answer.values)}
    if answer.text:
        data["text"] = answer.text
    return data


def _text(answer: AnswerData) -> str:
    if answer.get("cancelled"):
        return f"{answer['question']}\n(dismissed: no answer)"
    parts = [*answer.get("values", []), *([answer["text"]] if "text" in answer else [])]
    return f"{answer['question']}\n-> {', '.join(parts)}"
