"""DockerSandbox: what it tells the command line. No engine runs here: a stand-in takes its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.host.stand_in import docker_stand_in, words
from toolkit_core import DockerSandbox, ToolError, default_tools


async def test_the_words_of_a_container_and_of_a_command(tmp_path: Path) -> None:
    program, log = docker_stand_in(tmp_path)
    root = str(tmp_path / "work")
    async with DockerSandbox("debian:stable", root=root, program=program, user="1000", memory="1g") as sandbox:
        assert (await sandbox.run("echo hi")).stdout == b"hi\n"
        assert (await sandbox.run("echo again")).stdout == b"again\n"
    made, first, second, removed = words(log)
    name = made[1].removeprefix("--name=")
    assert made[:1] == ["run"]
    assert made[2:12] == [
        *("--rm", "--interactive", "--init", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
        *("--pids-limit=1024", "--network=none", "--user=1000", "--memory=1g", "debian:stable"),
    ]
    assert made[-2:] == ["sh", root]
    for call in (first, second):
        assert call[:5] == ["exec", "--interactive", name, "/bin/sh", "-c"]
    assert removed == ["rm", "--force", name]


async def test_the_network_only_when_it_is_asked_for(tmp_path: Path) -> None:
    program, log = docker_stand_in(tmp_path)
    async with DockerSandbox("i", root=str(tmp_path), program=program, network=True, options=["-v", "a:b"]) as sandbox:
        await sandbox.run("true")
    made = words(log)[0]
    assert "--network=none" not in made
    assert made[made.index("i") - 2 : made.index("i")] == ["-v", "a:b"]


async def test_no_engine_is_told_and_nothing_runs(tmp_path: Path) -> None:
    sandbox = DockerSandbox("i", program=str(tmp_path / "missing"))
    with pytest.raises(ToolError) as caught:
        await sandbox.run("true")
    assert caught.value.code == "unavailable"
    failing = tmp_path / "failing"
    failing.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon' >&2; exit 1\n")
    failing.chmod(0o755)
    for name, arguments in {"shell": {"command": "true"}, "read_file": {"path": "a"}}.items():
        tools = default_tools("/workspace", sandbox=DockerSandbox("i", program=str(failing)))
        result = await tools[name].call(arguments)
        assert result.error is not None
        assert result.error.code == "unavailable"
        assert "Cannot connect" in result.text


async def test_a_container_that_ended_is_told_and_no_new_one_takes_its_place(tmp_path: Path) -> None:
    program, log = docker_stand_in(tmp_path)
    async with DockerSandbox("i", root=str(tmp_path / "w"), program=program) as sandbox:
        await sandbox.run("true")
        name = words(log)[0][1].removeprefix("--name=")
        pid = int((tmp_path / "containers" / name).read_text())
        import os
        import signal

        os.kill(pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(ToolError) as caught:
                await sandbox.run("true")
            assert caught.value.code == "unavailable"


def test_an_image_is_no_option() -> None:
    for image in ("", "--privileged", "-v"):
        with pytest.raises(ValueError, match="image"):
            DockerSandbox(image)
