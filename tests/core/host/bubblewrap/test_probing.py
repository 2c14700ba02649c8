"""Why a sandbox cannot start, said so that somebody can mend it; and nothing runs meanwhile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.host.bubblewrap.confined import confined
from toolkit_core.errors import ToolError
from toolkit_core.host.bubblewrap import BubblewrapSandbox, probe, probing
from toolkit_core.host.bubblewrap.probing import diagnose, find_program

Stub = Callable[[str], Path]
UID_MAP = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"


async def test_a_sandbox_that_cannot_start_runs_nothing_and_says_how_to_mend_it(stub: Stub, workspace: Path) -> None:
    stub(UID_MAP)
    with pytest.raises(ToolError) as caught:
        await confined(BubblewrapSandbox(workspace), "touch ran")
    assert not (workspace / "ran").exists()
    assert caught.value.code == "unavailable"
    assert "the command was not run" in caught.value.message
    assert "uid map: Permission denied" in caught.value.message
    assert "apparmor_restrict_unprivileged_userns" in caught.value.hint
    assert os.listdir(workspace) == []


@pytest.mark.usefixtures("bubblewrap")
async def test_a_sandbox_that_breaks_later_is_not_a_command_that_exits_1(
    stub: Stub, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = BubblewrapSandbox(workspace)
    program = stub('#!/bin/sh\nexec /usr/bin/bwrap "$@"\n')
    assert (await confined(sandbox, "exit 1")).exit_code == 1
    program.write_text(UID_MAP)
    with pytest.raises(ToolError) as caught:
        await confined(sandbox, "touch ran")
    assert caught.value.code == "unavailable"
    assert "uid map" in caught.value.message
    program.write_text('#!/bin/sh\nexec /usr/bin/bwrap "$@"\n')
    assert (await confined(sandbox, "echo mended")).stdout == "mended\n"


async def test_one_that_is_missing_is_named_with_the_package(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolError, match="not on PATH") as caught:
        await confined(BubblewrapSandbox(workspace), "touch ran")
    assert "apt install bubblewrap" in caught.value.hint
    assert not BubblewrapSandbox(workspace).auto_approves("true")


def test_one_that_hangs_is_given_up(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "SANDBOX_PROBE_SECONDS", 0.3)
    stub("#!/bin/sh\nexec sleep 60\n")
    found = probe()
    assert not found.available
    assert "no answer within 0.3 s" in found.reason


def test_one_that_is_no_program_is_reported(stub: Stub) -> None:
    stub("\0not a program")
    assert "cannot be started" in probe().reason or "bubblewrap failed" in probe().reason


def test_one_that_a_command_could_have_written_is_passed_over(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = workspace / "bwrap"
    planted.write_text("#!/bin/sh\nexit 0\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace}{os.pathsep}.{os.pathsep}")
    monkeypatch.chdir(workspace)
    assert find_program() == str(planted)
    assert find_program([str(workspace)]) is None
    assert "not on PATH" in BubblewrapSandbox(workspace).probe().reason


@pytest.mark.parametrize(
    ("said", "reason", "fix"),
    [
        ("bwrap: Unknown option --disable-userns", "too old", "0.8.0"),
        ("bwrap: Creating new namespace failed: Operation not permitted", "namespaces", "user namespaces"),
        ("bwrap: No permissions to create new namespace", "namespaces", "user namespaces"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "namespaces", "user namespaces"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "/proc", "systempaths=unconfined"),
        ("bwrap: prctl(PR_SET_SECCOMP) failed", "filters", "CONFIG_SECCOMP_FILTER"),
        ("bwrap: execvp /bin/bash: No such file or directory", "shell", "hidden"),
        ("", "it said nothing", "doctor"),
    ],
)
def test_complaints_are_explained(said: str, reason: str, fix: str) -> None:
    found = diagnose(said)
    assert reason in found[0]
    assert fix in found[1]


@pytest.mark.parametrize(
    ("setting", "value", "fix"),
    [
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "/etc/apparmor.d/bwrap"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces"),
    ],
)
def test_the_fix_is_the_one_for_this_machines_setting(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: str, fix: str
) -> None:
    def read(path: str) -> str:
        return value if path == setting else ""

    monkeypatch.setattr(probing, "_setting", read)
    assert fix in diagnose("bwrap: setting up uid map: Permission denied")[1]


def test_another_platform_or_machine_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert "riscv64" in probe().reason
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "Linux" in probe().reason
