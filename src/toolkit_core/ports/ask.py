"""Ask: a person who answers questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Option:
    """One choice."""

    label: str
    description: str = ""


@dataclass(frozen=True)
class Question:
    """One question to a person.

    Attributes:
        id: Unique in its call; an answer belongs to one id.
        question: What is asked.
        header: A short title; may be empty.
        options: The choices; none means free text.
        multi_select: Several choices may be taken.
        allow_free_text: An answer in the person's own words is welcome.
    """

    id: str
    question: str
    header: str = ""
    options: tuple[Option, ...] = ()
    multi_select: bool = False
    allow_free_text: bool = True


@dataclass(frozen=True)
class Answer:
    """What a person answered: labels of the options taken, and own words."""

    values: tuple[str, ...] = ()
    text: str = ""


class Ask(Protocol):
    """One question at a time to whoever can answer.

    A call may raise `Suspended`, where the framework replays the whole tool call with the answer.
    """

    async def __call__(self, question: Question) -> Answer | str | None:
        """The answer, plain text for one in own words, or None when the person dismissed the question."""
        ...
