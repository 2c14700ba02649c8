from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from toolkit_core.host.commands import HostCommands
from toolkit_core.host.environment import CommandEnvironment

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def environment_of(commands: HostCommands, **options: str) -> dict[str, str]:
    result = await commands.run("env -0", **options)  # pyright: ignore[reportArgumentType]
    pairs = (entry.split("=", 1) for entry in result.stdout.decode().split("\0") if entry)
    return {pair[0]: pair[1] for pair in pairs}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FAKE_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "DATABASE_PASSWORD", "PYTHONPATH"):
        monkeypatch.setenv(name, "sk-x")
    monkeypatch.setenv("TRACEPARENT", "00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    monkeypatch.setenv("TRACESTATE", "vendor=1")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/tmp/config")
    monkeypatch.setenv("CARGO_HOME", "/opt/cargo")


async def test_control_an_inherited_environment_holds_the_keys(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path, env="inherit")
    found = await environment_of(commands)
    assert found["FAKE_API_KEY"] == "sk-x"
    await commands.aclose()


async def test_only_what_is_allowed_is_inherited(tmp_path: Path) -> None:
    before = dict(os.environ)
    commands = HostCommands(tmp_path)
    found = await environment_of(commands)
    assert "sk-x" not in found.values()
    assert found["PATH"] == os.environ["PATH"]
    assert (found["LC_TIME"], found["XDG_CONFIG_HOME"], found["CARGO_HOME"]) == ("C", "/tmp/config", "/opt/cargo")
    assert dict(os.environ) == before
    await commands.aclose()


async def test_no_secret_is_in_any_command_line_or_environment_above_the_command(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    result = await commands.run(
        "p=$$; while [ $p -gt 1 ] && [ $p != $OWNER ]; do tr '\\0' '\\n' </proc/$p/environ; "
        "tr '\\0' ' ' </proc/$p/cmdline; echo; p=$(awk '/^PPid/ {print $2}' /proc/$p/status); done",
        environment={"PATH": os.environ["PATH"], "OWNER": str(os.getpid())},
    )
    assert b"supervisor_program" in result.stdout
    assert b"sk-x" not in result.stdout
    await commands.aclose()


@pytest.mark.parametrize("choice", ["allowlist", "inherit", {"TRACEPARENT": "old", "TRACESTATE": "old", "A": "1"}])
async def test_trace_context_comes_only_from_the_call(tmp_path: Path, choice: object) -> None:
    commands = HostCommands(tmp_path, env=choice)  # pyright: ignore[reportArgumentType]
    without = await environment_of(commands)
    assert not {"TRACEPARENT", "TRACESTATE"} & without.keys()
    with_it = await environment_of(commands, traceparent=TRACE)
    assert with_it["TRACEPARENT"] == TRACE
    assert "TRACESTATE" not in with_it
    hurt = await environment_of(commands, traceparent="00-x\n\0y")
    assert "TRACEPARENT" not in hurt
    await commands.aclose()


async def test_a_mapping_is_the_whole_environment(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path, env={"ONLY": "this", "PATH": os.environ["PATH"]})
    found = await environment_of(commands)
    made = {"PWD", "SHLVL", "_", "OLDPWD", "TMPDIR", "XDG_CACHE_HOME", "PIP_CACHE_DIR", "npm_config_cache"}
    assert found.keys() - made == {"ONLY", "PATH"}
    await commands.aclose()


async def test_a_mapping_decides_about_its_temporary_folder(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path, env={"TMPDIR": "/elsewhere", "PATH": os.environ["PATH"]})
    assert (await environment_of(commands))["TMPDIR"] == "/elsewhere"
    await commands.aclose()


@pytest.mark.parametrize("choice", ["all", {"": "x"}, {"A=B": "x"}, {"A": "x\0"}])
def test_an_impossible_environment_is_refused_at_construction(tmp_path: Path, choice: object) -> None:
    with pytest.raises(ValueError, match="env"):
        HostCommands(tmp_path, env=choice)  # pyright: ignore[reportArgumentType]


async def test_a_session_has_its_own_temporary_folder_and_caches(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    first = await environment_of(commands, session="a")
    again = await environment_of(commands, session="a")
    other = await environment_of(commands, session="b")
    assert first["TMPDIR"] == again["TMPDIR"] != other["TMPDIR"]
    assert first["XDG_CACHE_HOME"].startswith(first["TMPDIR"])
    folder = Path(first["TMPDIR"])
    assert folder.stat().st_mode & 0o777 == 0o700
    await commands.run('echo kept > "$TMPDIR/file"', session="a")
    assert (await commands.run('cat "$TMPDIR/file"', session="a")).stdout == b"kept\n"
    await commands.aclose()
    assert not folder.exists()
    assert not Path(other["TMPDIR"]).exists()


async def test_a_removed_or_replaced_temporary_folder_is_made_anew(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    first = await environment_of(commands)
    await commands.run('rm -rf "$TMPDIR"')
    second = await environment_of(commands)
    assert Path(second["TMPDIR"]).is_dir()
    await commands.run(f'rm -rf "$TMPDIR"; ln -s {tmp_path} "$TMPDIR"')
    third = await environment_of(commands)
    assert Path(third["TMPDIR"]).is_dir()
    assert not Path(third["TMPDIR"]).is_symlink()
    await commands.run('mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; chmod 500 "$TMPDIR/a/b" "$TMPDIR/a"')
    await commands.aclose()
    for made in (first, second, third):
        assert not os.path.lexists(made["TMPDIR"])
    assert tmp_path.is_dir()


async def test_the_longest_unused_of_many_temporary_folders_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit_core.host.scratch.SCRATCH_SESSIONS_MAX", 2)
    commands = HostCommands(tmp_path)
    folders = [(await environment_of(commands, session=str(n)))["TMPDIR"] for n in range(4)]
    for _ in range(200):
        if sum(map(os.path.isdir, folders)) == 2:
            break
        await commands.run("sleep 0.02", session="3")
    assert [os.path.isdir(folder) for folder in folders] == [False, False, True, True]
    await commands.aclose()


def test_windows_names_are_not_lost() -> None:
    made = CommandEnvironment({"SystemRoot": "C:\\Windows"}).make()
    assert made == {"SystemRoot": "C:\\Windows"}


async def test_a_scratch_folder_that_a_killed_program_left_is_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, alive = tmp_path / f"toolkit-scratch-{ended.pid}-x", tmp_path / f"toolkit-scratch-{os.getppid()}-x"
    for folder in (left, alive, tmp_path / "toolkit-scratch-odd"):
        folder.mkdir()
        (folder / "cache").touch()
    monkeypatch.setattr("toolkit_core.host.scratch.Scratch._swept", False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    commands = HostCommands(tmp_path)
    await commands.run("true")
    await commands.aclose()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, "toolkit-scratch-odd"])
