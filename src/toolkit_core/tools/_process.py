"""process_start, process_read, process_write, process_stop: commands that go on between calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import PROCESS_WAIT_MAX_SECONDS
from toolkit_core.result import ToolResult
from toolkit_core.tools._command_text import output_text, signal_name
from toolkit_core.tools._shell import COMMAND_ALIASES, COMMAND_EFFECTS

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.ports.processes import Processes, ProcessState
    from toolkit_core.tool import Siblings, Tool

_ID: Final = "Id that the start of the process returned."
_ID_ALIASES: Final = {"id": "process_id"}


class ProcessStartArguments(Arguments):
    """The arguments of process_start."""

    command: str = Field(min_length=1, description="Command line for the shell, taken as it is.")
    cwd: str = Field(default="", description="Folder to run in, inside the root; empty for the root.")
    pty: bool = Field(default=False, description="Run it in a terminal, for programs that ask for one.")


class ProcessReadArguments(Arguments):
    """The arguments of process_read."""

    process_id: str = Field(min_length=1, description=_ID)
    wait_seconds: float = Field(
        default=0.0,
        ge=0,
        description=f"Wait so long for new output or the end; more than {PROCESS_WAIT_MAX_SECONDS:g} is clamped.",
    )


class ProcessWriteArguments(Arguments):
    """The arguments of process_write."""

    process_id: str = Field(min_length=1, description=_ID)
    text: str = Field(
        min_length=1, description="Text for its standard input, taken as it is: a line needs its newline at the end."
    )


class ProcessStopArguments(Arguments):
    """The arguments of process_stop."""

    process_id: str = Field(min_length=1, description=_ID)


class ProcessData(TypedDict):
    """The payload of the process tools."""

    process_id: str
    running: bool
    exit_code: int | None
    signal: int | None
    output: str
    output_cut: int


ArgsT = TypeVar("ArgsT", bound=Arguments)


def process_start_tool(
    processes: Processes,
    *,
    name: str = "process_start",
    description: str | None = None,
    siblings: Collection[str] | None = None,
) -> Tool[ProcessData]:
    """The tool process_start over a `Processes` port.

    Args:
        processes: Where processes run.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the other tools to hint at; None: the set decides.

    Raises:
        TypeError: No port.

    Error codes: invalid_arguments, access_denied, not_found, too_large (too many at once), io_error, unavailable.
    """

    async def run(args: ProcessStartArguments, context: ToolContext) -> ProcessState:
        return await processes.start(
            args.command, cwd=args.cwd, pty=args.pty, session=context.session, traceparent=context.traceparent
        )

    async def subject(args: ProcessStartArguments) -> str:
        return args.command

    def describe(siblings: Siblings) -> str:
        text = (
            "Starts a command line in a new shell and returns its process id and first output while it goes on "
            "running: for servers, watchers and programs to talk to. Standard output and standard error come "
            "together. It ends by itself, when it is stopped, or with the session."
        )
        return _with_hints(text, siblings, _START_HINTS)

    return _tool(processes, ProcessStartArguments, run, "process_start", describe, subject, name, description, siblings)


def process_read_tool(
    processes: Processes,
    *,
    name: str = "process_read",
    description: str | None = None,
    siblings: Collection[str] | None = None,
) -> Tool[ProcessData]:
    """The tool process_read over a `Processes` port; the options are those of `process_start_tool`."""

    async def run(args: ProcessReadArguments, context: ToolContext) -> ProcessState:
        seconds = min(args.wait_seconds, PROCESS_WAIT_MAX_SECONDS)
        return await processes.read(args.process_id, wait_seconds=seconds, session=context.session)

    async def subject(args: ProcessReadArguments) -> str:
        return await processes.command_of(args.process_id)

    def describe(siblings: Siblings) -> str:
        return (
            "Returns what a started process wrote since the last look, and whether it still runs. With "
            f"`wait_seconds` it waits up to that long (at most {PROCESS_WAIT_MAX_SECONDS:g}) for output or the end."
        )

    return _tool(processes, ProcessReadArguments, run, "process_read", describe, subject, name, description, siblings)


def process_write_tool(
    processes: Processes,
    *,
    name: str = "process_write",
    description: str | None = None,
    siblings: Collection[str] | None = None,
) -> Tool[ProcessData]:
    """The tool process_write over a `Processes` port; the options are those of `process_start_tool`."""

    async def run(args: ProcessWriteArguments, context: ToolContext) -> ProcessState:
        return await processes.write(args.process_id, args.text, session=context.session)

    async def subject(args: ProcessWriteArguments) -> str:
        return await processes.command_of(args.process_id)

    def describe(siblings: Siblings) -> str:
        return (
            "Writes text to the standard input of a started process and returns what it answered within a moment. "
            "Control characters are sent as they are: to a process with a terminal U+0003 is Ctrl-C, U+0004 Ctrl-D, "
            "U+001B Escape. Without a terminal a text of U+0004 alone closes its input."
        )

    return _tool(processes, ProcessWriteArguments, run, "process_write", describe, subject, name, description, siblings)


def process_stop_tool(
    processes: Processes,
    *,
    name: str = "process_stop",
    description: str | None = None,
    siblings: Collection[str] | None = None,
) -> Tool[ProcessData]:
    """The tool process_stop over a `Processes` port; the options are those of `process_start_tool`."""

    async def run(args: ProcessStopArguments, context: ToolContext) -> ProcessState:
        return await processes.stop(args.process_id, session=context.session)

    async def subject(args: ProcessStopArguments) -> str:
        return await processes.command_of(args.process_id)

    def describe(siblings: Siblings) -> str:
        return (
            "Ends a started process with everything that it started (first TERM, after a grace KILL) and returns its "
            "last output."
        )

    return _tool(processes, ProcessStopArguments, run, "process_stop", describe, subject, name, description, siblings)


_START_HINTS: Final = {
    "process_read": "further output comes from {}",
    "process_write": "its input goes through {}",
    "process_stop": "{} ends it",
    "shell": "a command that ends soon is better run with {}",
}


def _with_hints(text: str, siblings: Siblings, hints: dict[str, str]) -> str:
    found = [hint.format(siblings[kind]) for kind, hint in hints.items() if kind in siblings]
    if not found:
        return text
    sentence = "; ".join(found)
    return f"{text} {sentence[0].upper()}{sentence[1:]}."


def _tool(
    processes: Processes,
    arguments: type[ArgsT],
    work: Callable[[ArgsT, ToolContext], Awaitable[ProcessState]],
    kind: str,
    describe: Callable[[Siblings], str],
    subject: Callable[[ArgsT], Awaitable[str]],
    name: str,
    description: str | None,
    siblings: Collection[str] | None,
) -> Tool[ProcessData]:
    if processes is None:  # pyright: ignore[reportUnnecessaryComparison]  (callers err)
        raise TypeError(f"{kind}_tool needs a Processes port, such as HostProcesses(cwd)")

    async def run(args: ArgsT, context: ToolContext) -> ToolResult[ProcessData]:
        return _result(await work(args, context))

    return port_tool(
        arguments,
        run,
        kind=kind,
        describe=describe,
        payload=ProcessData,
        effects=COMMAND_EFFECTS,
        argument_aliases={**COMMAND_ALIASES, **_ID_ALIASES},
        subject=subject,
        name=name,
        description=description,
        siblings=siblings,
    )


def _result(state: ProcessState) -> ToolResult[ProcessData]:
    output = output_text(state.output)
    lines = [f"process {state.process_id}: {_standing(state)}"]
    if state.note:
        lines.append(state.note)
    if state.output_cut:
        lines.append(f"{state.output_cut:,} bytes of older output were dropped before anybody read them")
    lines.append(output or "(no new output)")
    data = ProcessData(
        process_id=state.process_id,
        running=state.running,
        exit_code=state.exit_code,
        signal=state.signal,
        output=output,
        output_cut=state.output_cut,
    )
    return ToolResult.ok("\n".join(lines), data)


def _standing(state: ProcessState) -> str:
    if state.running:
        return "running"
    if state.signal is not None:
        return f"ended by {signal_name(state.signal)}"
    return "ended" if state.exit_code is None else f"ended, exit code: {state.exit_code}"
