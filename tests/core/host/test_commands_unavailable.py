"""What a model is told where no command can be run at all."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from toolkit_core.errors import ToolError
from toolkit_core.host import execution
from toolkit_core.host.commands import HostCommands
from toolkit_core.host.shells import find_shell
from toolkit_core.host.supervised import Spec, SupervisorLostError


async def test_without_a_shell_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str, path: str | None = None) -> None:
        del name, path

    commands = HostCommands(tmp_path)
    monkeypatch.setattr(shutil, "which", nothing)
    find_shell.cache_clear()
    with pytest.raises(ToolError, match="no shell") as caught:
        await commands.run("true")
    assert caught.value.code == "unavailable"
    assert "install one" in caught.value.hint


async def test_without_a_supervisor_the_next_step_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(spec: Spec) -> None:
        raise SupervisorLostError("out of processes")

    commands = HostCommands(tmp_path)
    monkeypatch.setattr(execution, "start", lost)
    with pytest.raises(ToolError, match="out of processes") as caught:
        await commands.run("true")
    assert caught.value.code == "unavailable"
    assert "run it again" in caught.value.hint
    await commands.aclose()
