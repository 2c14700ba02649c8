"""Whoever answers questions in a test."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit_core.ports.ask import Answer, Question


class Answers:
    """An `Ask` port that answers as the test wrote down, and keeps the questions.

    Example:
        >>> answers.give("yes", None)  # the first question is answered, the second dismissed
        >>> context = ToolContext(ask=answers)
    """

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self._waiting: deque[Answer | str | None] = deque()

    def give(self, *answers: Answer | str | None) -> None:
        """Answers to the next questions, in order; None dismisses one."""
        self._waiting.extend(answers)

    async def __call__(self, question: Question) -> Answer | str | None:
        """The next answer.

        Raises:
            AssertionError: The test gave no answer to this question.
        """
        self.questions.append(question)
        if not self._waiting:
            raise AssertionError(f"nobody answers {question.question!r}: call answers.give(...) first")
        return self._waiting.popleft()
