"""One baseline for commands that overlap, and recovery after an owner that was killed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit_core.host.bubblewrap.runs import Record, forget_gone, state_folder


@pytest.fixture
def record(state: Path, workspace: Path) -> Record:
    state.mkdir(parents=True, exist_ok=True)
    return Record(str(state), str(workspace))


def test_overlapping_commands_return_to_the_state_before_the_first(record: Record, workspace: Path) -> None:
    first = record.begin()
    (workspace / "AGENTS.md").write_text("planted by the first")
    second = record.begin()
    assert second.survey == first.survey
    assert "AGENTS.md" in record.end(second)
    assert not (workspace / "AGENTS.md").exists()
    (workspace / "AGENTS.md").write_text("planted again")
    assert "AGENTS.md" in record.end(first)
    assert not (workspace / "AGENTS.md").exists()


def test_what_a_person_adds_between_commands_stays(record: Record, workspace: Path) -> None:
    assert record.end(record.begin()) == ""
    (workspace / "AGENTS.md").write_text("a person's")
    assert record.end(record.begin()) == ""
    assert (workspace / "AGENTS.md").exists()


def test_two_sandboxes_of_one_workspace_share_it(record: Record, state: Path, workspace: Path) -> None:
    first = record.begin()
    (workspace / "AGENTS.md").write_text("x")
    other = Record(str(state), str(workspace))
    assert other.begin().survey == first.survey


def test_another_process_shares_it_and_its_death_is_cleaned_up_after(
    record: Record, state: Path, workspace: Path
) -> None:
    code = (
        "import sys, pathlib; from toolkit_core.host.bubblewrap.runs import Record\n"
        f"Record({str(state)!r}, {str(workspace)!r}).begin()\n"
        f"pathlib.Path({str(workspace / 'CLAUDE.md')!r}).write_text('planted'); print('ok', flush=True)\n"
        "sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ok\n"
        during = record.begin()
        assert str(workspace / "CLAUDE.md") in during.survey.absent
        owner.kill()
    assert "CLAUDE.md" in record.end(during)

    owner = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert (workspace / "CLAUDE.md").exists()
    after = record.begin()
    assert not (workspace / "CLAUDE.md").exists()
    assert "CLAUDE.md" in record.end(after)


def test_nothing_is_left_of_a_record_but_a_lock(record: Record, state: Path) -> None:
    record.end(record.begin())
    assert [name for name in os.listdir(state) if not name.startswith("lock-")] == []


def test_a_spoilt_record_is_replaced(record: Record, state: Path) -> None:
    run = record.begin()
    (file,) = state.glob("*.json")
    file.write_text('{"runs": 3}')
    again = record.begin()
    assert len(json.loads(file.read_text())["runs"]) == 1
    assert record.end(again) == ""
    assert record.end(run) == ""


def test_the_workspace_is_swept_though_the_record_is_gone(record: Record, state: Path, workspace: Path) -> None:
    run = record.begin()
    (workspace / "AGENTS.md").write_text("x")
    for file in state.iterdir():
        file.unlink()
    state.chmod(0o500)
    try:
        note = record.end(run)
    finally:
        state.chmod(0o700)
    assert "AGENTS.md" in note


def test_the_state_lies_where_no_command_can_write(base: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_folder([str(base / "ws")]) == str(state / "toolkit-core-sandbox")
    fallback = state_folder([str(base)])
    assert fallback is not None
    assert fallback.endswith(f"toolkit-core-sandbox-{os.getuid()}")
    with contextlib.suppress(OSError):  # somebody's confined commands may have used it
        os.rmdir(fallback)
    assert state_folder(["/"]) is None
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(base))
    assert state_folder([]) == str(base / ".local" / "state" / "toolkit-core-sandbox")


@pytest.mark.parametrize("trap", ["link", "open"])
def test_a_state_folder_that_is_not_ours_alone_is_passed_over(
    base: Path, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(base))
    place = base / "toolkit-core-sandbox"
    if trap == "link":
        (base / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(base / "elsewhere")
    else:
        place.mkdir()
        place.chmod(0o777)
    found = state_folder([])
    assert found is not None
    assert not found.startswith(str(base))


def test_the_record_of_a_folder_that_is_gone_with_all_that_ran_in_it_is_removed(state: Path, base: Path) -> None:
    state.mkdir(parents=True, exist_ok=True)
    gone, busy, there = (base / name for name in ("gone", "busy", "there"))
    for folder in (gone, busy, there):
        folder.mkdir()
        Record(str(state), str(folder)).begin()
    files = {json.loads(file.read_text())["survey"]["root"]: file for file in state.glob("*.json")}
    for folder in (gone, there):
        record = json.loads(files[str(folder)].read_text())
        record["runs"][0]["started"] = "1"  # its owner is dead
        files[str(folder)].write_text(json.dumps(record))
    (state / "spoilt.json").write_text("{")
    for folder in (gone, busy):
        folder.rmdir()
    forget_gone(str(state))
    assert not files[str(gone)].exists()
    assert files[str(busy)].exists()
    assert files[str(there)].exists()
    forget_gone(str(state / "missing"))
