"""E2BSandbox: honest ends of commands, and no worker while it is not certain which one."""

from __future__ import annotations

import asyncio
import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from tests.core.sandboxes.planes import CommandExitException, Completed, FakeE2B, TimeoutException
from tests.support import require
from toolkit_core import E2BSandbox, ToolError, default_tools


class Scripted:
    """A worker whose commands answer as a test says."""

    def __init__(self, answer: Any = None, sandbox_id: str = "sb-1") -> None:
        self.sandbox_id = sandbox_id
        self.answer = answer if answer is not None else Completed("ok\n")
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.commands = self
        self.files = _ScriptedFiles()

    async def run(self, cmd: str, **options: Any) -> Any:
        self.calls.append((cmd, options))
        answer = self.answer
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, asyncio.Future):
            return await cast("asyncio.Future[Any]", answer)
        return answer


class _ScriptedFiles:
    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    async def read(self, path: str, format: str = "text") -> Any:  # noqa: A002 - as the SDK names it
        if path not in self.contents:
            raise FileNotFoundError(path)
        return self.contents[path]

    async def write(self, path: str, data: bytes) -> None:
        self.contents[path] = data


async def test_control_the_sdk_raises_for_a_nonzero_exit_and_the_result_is_still_a_result(tmp_path: Path) -> None:
    fake = FakeE2B(tmp_path)
    with pytest.raises(CommandExitException):
        await fake.commands.run("exit 2")
    result = await E2BSandbox(Scripted(CommandExitException("o", "e", 2))).run("false")
    assert (result.exit_code, result.stdout, result.stderr) == (2, b"o", b"e")
    shell = default_tools("/w", sandbox=E2BSandbox(Scripted(CommandExitException("o", "e", 2))))["shell"]
    envelope = await shell(command="false")
    assert not envelope.is_error
    data = envelope.to_dict()["data"]
    assert (data["exit_code"], data["stdout"], data["stderr"]) == (2, "o", "e")


@pytest.mark.parametrize("bad", [None, "0", 0.0, 1.5, float("nan"), float("inf"), True, [], {}])
async def test_a_missing_or_impossible_exit_code_is_never_success(bad: Any) -> None:
    sandbox = E2BSandbox(Scripted(Completed("looks fine", "", bad)))
    with pytest.raises(ToolError, match="did not say how the command ended"):
        await sandbox.run("true")
    result = await default_tools("/w", sandbox=sandbox)["shell"](command="true")
    assert result.is_error


async def test_exit_codes_under_both_names_must_agree() -> None:
    assert (await E2BSandbox(Scripted({"exitCode": 7})).run("x")).exit_code == 7
    assert (await E2BSandbox(Scripted({"exitCode": 7, "exit_code": 7})).run("x")).exit_code == 7
    with pytest.raises(ToolError, match="both"):
        await E2BSandbox(Scripted({"exitCode": 0, "exit_code": 7})).run("x")


async def test_timeouts_folder_and_variables_are_passed_on() -> None:
    worker = Scripted()
    await E2BSandbox(worker).run("x", cwd="/w", timeout_seconds=7, environment={"A": "b"})
    _, options = worker.calls[0]
    assert (options["cwd"], options["timeout"], options["envs"]["A"]) == ("/w", 7, "b")


async def test_a_timed_out_command_is_killed_or_said_to_run_still(tmp_path: Path) -> None:
    command = f"sleep 3; touch {tmp_path}/late"
    control = FakeE2B(tmp_path)
    with pytest.raises(TimeoutException):
        await control.commands.run(f"sleep 1; touch {tmp_path}/control", timeout=0.2)
    await asyncio.sleep(1.5)
    assert (tmp_path / "control").exists(), "CONTROL: the service goes on with what it no longer waits for"
    result = await E2BSandbox(FakeE2B(tmp_path), root=str(tmp_path)).run(command, timeout_seconds=0.5)
    assert result.timed_out
    assert "may still run" not in result.note
    await asyncio.sleep(3)
    assert not (tmp_path / "late").exists()

    unkillable = Scripted(TimeoutException("too long"))
    result = await E2BSandbox(unkillable).run("sleep 9", timeout_seconds=1)
    assert result.timed_out
    assert "may still run" in result.note
    assert len(unkillable.calls) == 2, "a kill was asked for"
    envelope = await default_tools("/w", sandbox=E2BSandbox(unkillable))["shell"](command="sleep 9", timeout_seconds=1)
    assert envelope.error is not None
    assert envelope.error.code == "timed_out"
    assert "may still run" in envelope.text


async def test_a_failed_restore_leaves_no_worker_until_a_good_one() -> None:
    healthy, outcomes = Scripted(), list[Any]()

    async def connect(name: str) -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    sandbox = E2BSandbox(healthy, connect=connect)
    assert (await sandbox.run("x")).exit_code == 0
    for outcome in (ConnectionError("gone"), Scripted(sandbox_id="another"), object(), None):
        outcomes.append(outcome)
        with pytest.raises((ToolError, TypeError)):
            await sandbox.restore("sb-9")
        for work in (sandbox.run("x"), sandbox.read_bytes("/a"), sandbox.write_bytes("/a", b""), sandbox.snapshot()):
            with pytest.raises(ToolError) as caught:
                await work
            assert caught.value.code == "unavailable"
    assert len(healthy.calls) == 1
    outcomes.append(Scripted(Completed("revived"), "sb-9"))
    await sandbox.restore("sb-9")
    assert (await sandbox.run("x")).stdout == b"revived"


async def test_during_a_restore_nothing_runs_and_a_competing_one_is_refused() -> None:
    gate: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def connect(name: str) -> Any:
        return await gate

    sandbox = E2BSandbox(Scripted(), connect=connect)
    restoring = asyncio.create_task(sandbox.restore("sb-2"))
    await asyncio.sleep(0)
    with pytest.raises(ToolError, match="being restored"):
        await sandbox.run("x")
    with pytest.raises(ToolError, match="already in progress"):
        await sandbox.restore("sb-3")
    gate.set_result(Scripted(sandbox_id="sb-2"))
    await restoring
    assert (await sandbox.run("x")).exit_code == 0


async def test_a_late_answer_of_an_earlier_worker_is_refused() -> None:
    late: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def connect(name: str) -> Any:
        return Scripted(Completed("new"), name)

    sandbox = E2BSandbox(Scripted(late), connect=connect)
    running = asyncio.create_task(sandbox.run("x"))
    await asyncio.sleep(0)
    await sandbox.restore("sb-2")
    late.set_result(Completed("old"))
    with pytest.raises(ToolError, match="earlier worker was refused"):
        await running
    assert (await sandbox.run("x")).stdout == b"new"


async def test_a_cancelled_restore_leaves_no_worker() -> None:
    async def connect(name: str) -> Any:
        await asyncio.sleep(60)

    sandbox = E2BSandbox(Scripted(), connect=connect)
    restoring = asyncio.create_task(sandbox.restore("sb-2"))
    await asyncio.sleep(0)
    restoring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await restoring
    with pytest.raises(ToolError, match="last restore failed"):
        await sandbox.run("x")


async def test_a_failed_sandbox_never_shows_a_file_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "canary.txt").write_text("canary of the host")

    async def connect(name: str) -> Any:
        raise ConnectionError("gone")

    sandbox = E2BSandbox(Scripted(), connect=connect, root=str(tmp_path))
    with pytest.raises(ToolError):
        await sandbox.restore("sb-2")
    tools = default_tools(str(tmp_path), sandbox=sandbox)
    for name, arguments in {
        "read_file": {"path": "canary.txt"},
        "grep": {"pattern": "canary"},
        "glob": {"pattern": "*"},
        "shell": {"command": "cat canary.txt"},
    }.items():
        result = await tools[name].call(arguments)
        assert result.is_error
        assert "canary of the host" not in result.text


async def test_snapshots_by_pause_and_by_the_own_connect() -> None:
    class Pausing(Scripted):
        async def pause(self) -> bool:
            return False

        async def connect(self) -> Any:
            return self

    sandbox = E2BSandbox(Pausing(sandbox_id="sb-7"))
    assert await sandbox.snapshot() == "sb-7"
    await sandbox.restore("sb-7")
    assert (await sandbox.run("x")).exit_code == 0
    with pytest.raises(ToolError, match="no way to restore"):
        await sandbox.restore("sb-8")
    with pytest.raises(ToolError, match="no snapshots"):
        await E2BSandbox(Scripted()).snapshot()


async def test_tools_read_and_write_through_a_worker_without_a_real_shell() -> None:
    worker = Scripted()
    tools = default_tools("/w", sandbox=E2BSandbox(worker))
    assert not (await tools["write_file"](path="a.txt", content="one\n")).is_error
    assert worker.files.contents == {"/w/a.txt": b"one\n"}
    assert "one" in (await tools["read_file"](path="a.txt")).text
    missing = await tools["read_file"](path="b.txt")
    assert missing.error is not None
    assert missing.error.code == "not_found"


def test_what_is_no_sandbox_is_refused_when_it_is_built() -> None:
    with pytest.raises(TypeError, match=r"commands\.run"):
        E2BSandbox(object())  # pyright: ignore[reportArgumentType]  (callers err)


async def test_every_call_fits_the_installed_sdk(tmp_path: Path) -> None:
    require(find_spec("e2b"), "the e2b package is not installed")
    load: Any = import_module
    sandbox_type = load("e2b").AsyncSandbox
    commands = load("e2b.sandbox_async.commands.command").Commands
    filesystem = load("e2b.sandbox_async.filesystem.filesystem").Filesystem
    exceptions, handle = load("e2b.exceptions"), load("e2b.sandbox.commands.command_handle")
    this: Any = object()
    run = inspect.signature(commands.run)
    run.bind(this, "x", envs={}, cwd="/", timeout=1, retain_output=False, on_stdout=None, on_stderr=None)
    run.bind(this, "x", timeout=1)
    inspect.signature(commands.kill).bind(this, 1)
    inspect.signature(filesystem.read).bind(this, "/a", format="bytes")
    inspect.signature(filesystem.write).bind(this, "/a", b"")
    inspect.signature(filesystem.remove).bind(this, "/a")
    for name in ("commands", "files", "sandbox_id", "create_snapshot", "pause", "connect"):
        assert hasattr(sandbox_type, name), name
    fake = inspect.signature(FakeE2B(tmp_path).commands.run).parameters
    assert set(fake) <= set(run.parameters), "the double has the real shape"
    from toolkit_core.sandboxes.foreign import code_of, has_exit_code

    assert code_of(exceptions.FileNotFoundException("x")) == "not_found"
    assert code_of(exceptions.SandboxNotRunningException("x")) == "unavailable"
    assert has_exit_code(handle.CommandExitException(stderr="e", stdout="o", exit_code=2, error=None))
