"""A wrapper rewrites the invocation; timeout, caps and kill stay, and it cleans up once on every path."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.core.host.trees import Sleeper, open_descriptors
from toolkit_core.errors import ToolError
from toolkit_core.host.commands import HostCommands
from toolkit_core.ports.sandbox import Invocation, SupportsWrap

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@dataclass
class Wrapper:
    """Runs the program as it is, and counts."""

    change: dict[str, object] = field(default_factory=dict[str, object])
    note: str = "quarantined .mcp.json"
    failure: Exception | None = None
    seen: list[tuple[Invocation, str]] = field(default_factory=list[tuple[Invocation, str]])
    cleaned: int = 0
    alive_at_clean_up: list[int] = field(default_factory=list[int])
    sleeper: Sleeper | None = None

    async def wrap(self, invocation: Invocation, command: str) -> Invocation:
        self.seen.append((invocation, command))
        return replace(invocation, after_exit=self._after_exit, **self.change)  # pyright: ignore[reportArgumentType]

    async def _after_exit(self) -> str:
        self.cleaned += 1
        if self.sleeper is not None:
            self.alive_at_clean_up = self.sleeper.pids()
        await asyncio.sleep(0.01)
        if self.failure is not None:
            raise self.failure
        return self.note


def test_the_wrapper_is_one_of_the_port() -> None:
    assert isinstance(Wrapper(), SupportsWrap)


async def test_the_command_is_handed_over_and_the_note_comes_back(tmp_path: Path) -> None:
    wrapper = Wrapper()
    commands = HostCommands(tmp_path, wrap=wrapper)
    result = await commands.run("echo hi", traceparent=TRACE)
    assert (result.stdout, result.note, wrapper.cleaned) == (b"hi\n", "quarantined .mcp.json", 1)
    invocation, command = wrapper.seen[0]
    assert command == "echo hi"
    assert invocation.argv[1:] == ("-c", "echo hi")
    assert os.path.isabs(invocation.argv[0])
    assert invocation.cwd == os.path.realpath(tmp_path)
    await commands.aclose()


@pytest.mark.parametrize("choice", ["allowlist", "inherit"])
async def test_a_wrapped_run_gets_no_trace_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    monkeypatch.setenv("TRACEPARENT", TRACE)
    monkeypatch.setenv("TRACESTATE", "a=b")
    wrapper = Wrapper()
    commands = HostCommands(tmp_path, wrap=wrapper, env=choice)  # pyright: ignore[reportArgumentType]
    result = await commands.run("env", traceparent=TRACE)
    assert b"TRACEPARENT" not in result.stdout
    assert b"TRACESTATE" not in result.stdout
    assert not {"TRACEPARENT", "TRACESTATE"} & wrapper.seen[0][0].environment.keys()
    await commands.aclose()


async def test_argv_folder_environment_and_descriptors_are_the_wrappers(tmp_path: Path) -> None:
    wrapper = Wrapper(
        {
            "argv": ("/bin/bash", "-c", "pwd; echo $MINE; cat <&7; cat <&23; ls /proc/self/fd | wc -l"),
            "cwd": "/",
            "environment": {"MINE": "yes", "PATH": os.environ["PATH"]},
            "descriptors": {7: b"seven\n", 23: b"x" * 300_000},
        }
    )
    commands = HostCommands(tmp_path, wrap=wrapper)
    result = await commands.run("ignored")
    lines = result.stdout.decode().splitlines()
    assert lines[:3] == ["/", "yes", "seven"]
    assert lines[3].startswith("x" * 300_000)
    assert lines[3][300_000:] + "".join(lines[4:]) in ("6", "7")
    await commands.aclose()


async def test_an_inherited_descriptor_is_passed_on_and_left_alone(tmp_path: Path) -> None:
    with tempfile.TemporaryFile() as status:
        wrapper = Wrapper({"inherited": {9: status.fileno()}})
        commands = HostCommands(tmp_path, wrap=wrapper)
        assert (await commands.run("echo told >&9")).exit_code == 0
        status.seek(0)
        assert status.read() == b"told\n"
    await commands.aclose()


async def test_numbers_may_collide_with_those_of_this_process(tmp_path: Path) -> None:
    wanted = {number: b"%d\n" % number for number in range(3, 30)}
    commands = HostCommands(tmp_path, wrap=Wrapper({"descriptors": wanted}))
    command = "; ".join(f"cat <&{number}" for number in wanted)
    assert (await commands.run(command)).stdout == b"".join(wanted.values())
    await commands.aclose()


async def test_it_cleans_up_once_after_the_whole_tree_is_dead(tmp_path: Path) -> None:
    for command, timeout in (("{0} & echo ok", 30.0), ("setsid {0} & {0}", 1.0), ("{0} & sleep 0.2; kill -9 $$", 30.0)):
        sleeper = Sleeper()
        wrapper = Wrapper(sleeper=sleeper)
        commands = HostCommands(tmp_path, wrap=wrapper)
        await commands.run(command.format(sleeper.command), timeout_seconds=timeout)
        assert (wrapper.cleaned, wrapper.alive_at_clean_up) == (1, [])
        await commands.aclose()


async def test_it_cleans_up_once_when_cancelled(tmp_path: Path) -> None:
    sleeper = Sleeper()
    wrapper = Wrapper(sleeper=sleeper)
    commands = HostCommands(tmp_path, wrap=wrapper)
    running = asyncio.create_task(commands.run(sleeper.command))
    await sleeper.started()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (wrapper.cleaned, wrapper.alive_at_clean_up) == (1, [])
    await commands.aclose()


async def test_it_cleans_up_once_whenever_it_is_cancelled(tmp_path: Path) -> None:
    for steps in range(25):
        wrapper = Wrapper()
        commands = HostCommands(tmp_path, wrap=wrapper)
        running = asyncio.create_task(commands.run("true"))
        for _ in range(steps):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert wrapper.cleaned == len(wrapper.seen)
        await commands.aclose()


@pytest.mark.parametrize(
    "change",
    [
        {"argv": ("/missing/program",)},
        {"argv": ("/bin/sh", "-c", "x" * 200_000)},
        {"argv": ("/bin/sh", "-c", "nul \0")},
        {"cwd": "/missing"},
        {"descriptors": {5: b"x"}, "argv": ("/etc/hostname",)},
    ],
)
async def test_it_cleans_up_once_when_nothing_could_be_started(tmp_path: Path, change: dict[str, object]) -> None:
    wrapper = Wrapper(change)
    commands = HostCommands(tmp_path, wrap=wrapper)
    await HostCommands(tmp_path).run("true")
    descriptors = open_descriptors()
    with pytest.raises(ToolError):
        await commands.run("true")
    assert wrapper.cleaned == 1
    assert open_descriptors() <= descriptors + 4  # the supervisor's, if it was not there
    assert (await HostCommands(tmp_path).run("echo on")).stdout == b"on\n"
    await commands.aclose()


async def test_a_clean_up_that_fails_is_reported_not_thrown(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path, wrap=Wrapper(failure=OSError("disk gone")))
    result = await commands.run("echo hi")
    assert result.stdout == b"hi\n"
    assert "disk gone" in result.note
    await commands.aclose()


async def test_a_sandbox_that_never_started_the_command_is_unavailable(tmp_path: Path) -> None:
    failure = ToolError("the sandbox did not start", code="unavailable")
    commands = HostCommands(tmp_path, wrap=Wrapper(failure=failure))
    with pytest.raises(ToolError) as caught:
        await commands.run("echo hi")
    assert caught.value is failure
    ended = await commands.run("sleep 60", timeout_seconds=0.3)
    assert ended.timed_out
    await commands.aclose()


async def test_a_wrapper_that_refuses_runs_nothing(tmp_path: Path) -> None:
    class Refuses:
        async def wrap(self, invocation: Invocation, command: str) -> Invocation:
            raise ToolError("no bubblewrap here", code="unavailable", hint="install it")

    commands = HostCommands(tmp_path, wrap=Refuses())
    with pytest.raises(ToolError, match="no bubblewrap"):
        await commands.run("touch started")
    assert not (tmp_path / "started").exists()
    await commands.aclose()


async def test_a_spared_leader_is_not_asked_to_end_but_killed(tmp_path: Path) -> None:
    """The first process is the confinement: its death would take the command before it could clean up."""
    leader = (
        "trap 'echo leader asked' TERM; bash -c 'trap \"echo cleaned; exit\" TERM; sleep 60 & wait' & wait $!; echo up"
    )
    commands = HostCommands(tmp_path, wrap=Wrapper({"spare_leader": True, "argv": ("/bin/bash", "-c", leader)}))
    result = await commands.run("ignored", timeout_seconds=1)
    assert result.timed_out
    assert result.stdout == b"cleaned\nup\n"
    asked = HostCommands(tmp_path, wrap=Wrapper({"argv": ("/bin/bash", "-c", leader)}))
    assert b"leader asked" in (await asked.run("ignored", timeout_seconds=1)).stdout
    for each in (commands, asked):
        await each.aclose()
