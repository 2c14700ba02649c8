from __future__ import annotations

import sys

import pytest

from toolkit_core import Answer, Option, Question, ask_user_question_tool
from toolkit_core.context import Progress, ToolContext
from toolkit_core.notebook import LiveProgress, NotebookAsk, read_answer

COLOURS = Question("1", "Which colour?", "Paint", (Option("red"), Option("blue", "as the sky")))
SEVERAL = Question("1", "Which colours?", options=(Option("red"), Option("blue")), multi_select=True)
CLOSED = Question("1", "Sure?", options=(Option("yes"), Option("no")), allow_free_text=False)
FREE = Question("1", "Your name?")


@pytest.mark.parametrize(
    ("question", "said", "answer"),
    [
        (COLOURS, "2", Answer(("blue",))),
        (COLOURS, "red", Answer(("red",))),
        (COLOURS, "green", Answer(text="green")),
        (COLOURS, "7", Answer(text="7")),
        (COLOURS, "", None),
        (SEVERAL, "1, 2", Answer(("red", "blue"))),
        (SEVERAL, "2,2", Answer(("blue",))),
        (SEVERAL, "red, green", Answer(text="red, green")),
        (CLOSED, "1", Answer(("yes",))),
        (CLOSED, "maybe", None),
        (CLOSED, "³", None),
        (CLOSED, "9" * 5_000, None),
        (FREE, "Ada", Answer(text="Ada")),
        (FREE, "3", Answer(text="3")),
    ],
)
def test_what_is_typed_is_a_number_a_label_or_own_words(question: Question, said: str, answer: Answer | None) -> None:
    assert read_answer(question, said) == answer


async def test_outside_of_a_notebook_input_asks_until_a_choice_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = iter(["perhaps", "2"])

    def asked(_: str) -> str:
        return next(said)

    monkeypatch.setattr("builtins.input", asked)

    assert await NotebookAsk()(CLOSED) == Answer(("no",))
    assert capsys.readouterr().out == "Sure?\n  1  yes\n  2  no\nThere is no choice perhaps.\n"


@pytest.mark.parametrize("said", ["", None])
async def test_an_empty_line_or_the_end_of_input_dismisses(monkeypatch: pytest.MonkeyPatch, said: str | None) -> None:
    def asked(_: str) -> str:
        if said is None:
            raise EOFError
        return said

    monkeypatch.setattr("builtins.input", asked)
    question = {"question": "Sure?", "options": ["yes", "no"]}

    result = await ask_user_question_tool().call({"questions": [question]}, ToolContext(ask=NotebookAsk()))

    assert result.data == {"answers": [{"question": "Sure?", "cancelled": True}]}


async def test_a_question_cannot_move_the_cursor_or_turn_the_text_round(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked(_: str) -> str:
        return "1"

    monkeypatch.setattr("builtins.input", asked)

    await NotebookAsk()(Question("1", "a\x1b[2Jb\u202ec", options=(Option("x\x00\x9by"),)))

    assert capsys.readouterr().out == "a␛[2Jb\\u202ec\n  1  x␀\\u009by\n"


def test_outside_of_a_notebook_progress_is_written_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "IPython", raising=False)

    LiveProgress()(Progress("stdout", "hello\n\x1b[2J\u202e"))

    assert capsys.readouterr().out == "hello\n␛[2J\\u202e"
