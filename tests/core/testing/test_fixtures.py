from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolkit_core import Answer, InMemorySandbox, Question

if TYPE_CHECKING:
    from toolkit_core.testing.fixtures import Answers


def test_the_workspace_is_an_empty_folder_whose_path_holds_no_link(workspace: Path) -> None:
    assert list(workspace.iterdir()) == []
    assert workspace == workspace.resolve()


async def test_the_sandbox_has_a_filesystem_of_its_own(sandbox: InMemorySandbox) -> None:
    await sandbox.write_bytes("/workspace/a.txt", b"here")
    assert await sandbox.read_bytes("/workspace/a.txt") == b"here"
    assert sandbox.filesystem == "separate"


async def test_answers_come_in_order_and_the_questions_are_kept(answers: Answers) -> None:
    answers.give("yes", Answer(values=("a",)), None)
    questions = [Question(id=str(n), question=f"q{n}") for n in range(3)]

    given = [await answers(question) for question in questions]

    assert given == ["yes", Answer(values=("a",)), None]
    assert answers.questions == questions


async def test_a_question_that_the_test_did_not_expect_fails_it(answers: Answers) -> None:
    with pytest.raises(AssertionError, match="nobody answers 'why\\?'"):
        await answers(Question(id="1", question="why?"))
