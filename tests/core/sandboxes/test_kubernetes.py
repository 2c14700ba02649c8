"""KubernetesSandbox over the shape of k8s-agent-sandbox's async client."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.core.sandboxes.planes import Completed, FakeKubernetes
from tests.support import require
from toolkit_core import KubernetesSandbox, ToolError, default_tools


class Answering(FakeKubernetes):
    def __init__(self, folder: Path, answer: Any) -> None:
        super().__init__(folder)
        self.answer = answer

    async def run(self, command: str, timeout: int = 60, command_timeout: float | None = None, **_: Any) -> Any:
        self.calls.append(("run", (command,), {"timeout": timeout, "command_timeout": command_timeout}))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("bad", [None, -1, "0", 1.0, True])
async def test_an_exit_code_that_was_not_sent_is_never_success(tmp_path: Path, bad: Any) -> None:
    sandbox = KubernetesSandbox(Answering(tmp_path, Completed("fine", "", bad)))
    with pytest.raises(ToolError, match="did not say how the command ended"):
        await sandbox.run("true")


async def test_a_service_that_fails_is_unavailable_and_not_a_result(tmp_path: Path) -> None:
    for error in (RuntimeError("502 from the router"), ConnectionError("reset")):
        with pytest.raises(ToolError) as caught:
            await KubernetesSandbox(Answering(tmp_path, error)).run("true")
        assert caught.value.code == "unavailable"


async def test_the_timeout_is_passed_on_with_time_to_answer(tmp_path: Path) -> None:
    fake = Answering(tmp_path, Completed())
    await KubernetesSandbox(fake).run("true", timeout_seconds=7.5)
    options = fake.calls[0][2]
    assert options["command_timeout"] == 7.5
    assert options["timeout"] > 7.5


async def test_a_timeout_that_the_service_reports_is_one_and_asks_for_a_kill(tmp_path: Path) -> None:
    fake = Answering(tmp_path, Completed("", "", 124, timed_out=True))
    result = await KubernetesSandbox(fake).run("sleep 9", timeout_seconds=1)
    assert result.timed_out
    assert result.exit_code is None
    assert len(fake.calls) == 2
    assert "may still run" in result.note


async def test_files_outside_of_the_service_root_pass_through_commands(tmp_path: Path) -> None:
    root, elsewhere = tmp_path / "app", tmp_path / "elsewhere"
    root.mkdir()
    fake = FakeKubernetes(root)
    sandbox = KubernetesSandbox(fake, root=str(root))
    content = bytes(range(256)) * 1_000
    await sandbox.write_bytes(str(elsewhere / "deep" / "f"), content)
    assert await sandbox.read_bytes(str(elsewhere / "deep" / "f")) == content
    assert not [call for call in fake.calls if call[0] != "run"]
    await sandbox.write_bytes("top.txt", b"x")
    assert fake.calls[-1][0] == "write"


async def test_the_default_tools_work_there(tmp_path: Path) -> None:
    tools = default_tools(tmp_path, sandbox=KubernetesSandbox(FakeKubernetes(tmp_path), root=str(tmp_path)))
    assert not (await tools["write_file"](path="src/a.py", content="import os\n")).is_error
    assert (await tools["grep"](pattern="import")).text.startswith("src/a.py:1:import os")
    assert (await tools["glob"](pattern="**/*.py")).text == "src/a.py"


async def test_every_call_fits_the_installed_sdk() -> None:
    require(find_spec("k8s_agent_sandbox"), "k8s-agent-sandbox is not installed")
    load: Any = import_module
    executor = load("k8s_agent_sandbox.commands.async_command_executor").AsyncCommandExecutor
    filesystem = load("k8s_agent_sandbox.files.async_filesystem").AsyncFilesystem
    result = load("k8s_agent_sandbox.models").ExecutionResult
    this: Any = object()
    inspect.signature(executor.run).bind(this, "x", timeout=1, command_timeout=1.0)
    inspect.signature(filesystem.read).bind(this, "a", timeout=1)
    inspect.signature(filesystem.write).bind(this, "a", b"", timeout=1)
    assert result().exit_code == -1, "what the SDK fills in where the service sent none"
