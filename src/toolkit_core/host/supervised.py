"""A command that somebody keeps: how it is asked for, how it is steered, how it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Step = Literal["chdir", "exec", "fork"]


@dataclass(frozen=True)
class Spec:
    """A program to start.

    Attributes:
        argv: The program, an absolute path, and its arguments.
        cwd: Absolute folder.
        environment: The whole environment.
        descriptors: Number in the command -> open descriptor here; 0 absent means /dev/null.
        timeout_seconds: From its start; infinite where it has none.
        grace_seconds: Between TERM and KILL.
        terminal: Descriptor 0 is a terminal that becomes its controlling one.
        spare_leader: TERM goes to what the program started, not to itself.
        tell_start: The start waits until the program runs; else a refusal may come with the ending.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    descriptors: Mapping[int, int] = field(default_factory=dict[int, int])
    timeout_seconds: float = math.inf
    grace_seconds: float = 2.0
    terminal: bool = False
    spare_leader: bool = False
    tell_start: bool = False


@dataclass(frozen=True)
class Ending:
    """How a command ended; its whole tree is dead and reaped, but for `left`.

    Attributes:
        exit_code: The program's exit status; None where a signal ended it, or nobody saw its end.
        signal: The signal that ended it.
        timed_out: Its timeout ended it.
        survivors_killed: Processes that outlived it and were killed.
        left: Processes that could not be killed (another user's, uninterruptible).
        lost: Why it was ended early by no wish of the caller; "" for none.
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    survivors_killed: int = 0
    left: int = 0
    lost: str = ""


class Supervised(Protocol):
    """A running command."""

    async def ending(self) -> Ending:
        """Wait until nothing of it is left. Raises `StartError` where it never ran."""
        ...

    def terminate(self) -> None:
        """TERM to its whole tree, after the grace KILL."""
        ...

    def kill(self) -> None:
        """KILL its whole tree now."""
        ...

    def force(self) -> None:
        """Kill whoever keeps it, and so its tree: after an order that was not answered."""
        ...

    def close(self) -> None:
        """Let go of it after its end."""
        ...


class StartError(OSError):
    """The system refused to start it; nothing ran. `step` says at what."""

    def __init__(self, number: int, reason: str, step: Step) -> None:
        super().__init__(number, reason)
        self.step: Step = step


class SupervisorLostError(Exception):
    """There is no supervisor, or it does not answer; the text says why.

    `may_have_run` where the command may have begun.
    """

    def __init__(self, reason: str, *, may_have_run: bool = False) -> None:
        super().__init__(reason)
        self.may_have_run = may_have_run
