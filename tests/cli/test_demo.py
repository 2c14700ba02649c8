from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from tests.cli.test_demo_brain import FIX, project, suite_passes
from toolkit_core.cli import demo, main
from toolkit_core.cli.demo_job import DemoJob, DemoUnavailable

FRAMEWORKS = ["langchain", "llamaindex"]


@pytest.fixture
def demo_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[demo.Run], None]:
    """Puts a function in the place of every framework's demo."""

    def put(run: demo.Run) -> None:
        monkeypatch.setattr(demo, "entry_points", _found(_Loaded(run)))

    return put


def _found(point: object) -> Callable[..., list[object]]:
    def entry_points(**_: str) -> list[object]:
        return [point]

    return entry_points


class _Loaded:
    """An entry point that is loaded already."""

    def __init__(self, run: demo.Run) -> None:
        self._run = run

    def load(self) -> demo.Run:
        return self._run


def mend(job: DemoJob, say: Callable[[str], None]) -> None:
    name, old, new = FIX
    file = Path(job.workspace, name)
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    say("mended")


def test_every_adapter_is_found_by_its_entry_point() -> None:
    found: list[EntryPoint] = list(entry_points(group="toolkit.demo"))

    assert {(point.name, point.value) for point in found} >= {
        ("langchain", "toolkit_langchain.demo:run"),
        ("llamaindex", "toolkit_llamaindex.demo:run"),
    }


def test_the_exit_code_is_0_when_the_tests_pass_for_each_framework(
    demo_of: Callable[[demo.Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    demo_of(mend)

    assert main(["demo"]) == 0

    shown = capsys.readouterr().out
    assert shown.count("mended") == 2  # each began with the bug
    assert "langchain: the tests pass" in shown
    assert "llamaindex: the tests pass" in shown


def test_a_demo_that_only_claims_success_ends_with_1(
    demo_of: Callable[[demo.Run], None], capsys: pytest.CaptureFixture[str]
) -> None:
    demo_of(lambda _, say: say("All tests pass now."))

    assert main(["demo", "--framework", "langchain"]) == 1

    assert "langchain: NOT done" in capsys.readouterr().out


def test_changing_the_tests_is_no_fix(demo_of: Callable[[demo.Run], None], capsys: pytest.CaptureFixture[str]) -> None:
    def cheat(job: DemoJob, _: Callable[[str], None]) -> None:
        Path(job.workspace, "tests/test_pricing.py").write_text("")

    demo_of(cheat)

    assert main(["demo", "--framework", "langchain"]) == 1
    assert "The tests were changed" in capsys.readouterr().out


def test_removing_the_tests_is_no_fix(demo_of: Callable[[demo.Run], None]) -> None:
    def cheat(job: DemoJob, _: Callable[[str], None]) -> None:
        for file in Path(job.workspace, "tests").iterdir():
            file.unlink()

    demo_of(cheat)

    assert main(["demo", "--framework", "langchain"]) == 1


def test_what_is_missing_is_said(demo_of: Callable[[demo.Run], None], capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*_: object) -> None:
        raise DemoUnavailable("set ANTHROPIC_API_KEY")

    demo_of(fails)

    assert main(["demo", "--framework", "langchain"]) == 1
    assert "langchain: set ANTHROPIC_API_KEY" in capsys.readouterr().err


def test_a_framework_that_is_not_installed_is_named_with_its_install_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def load(self) -> None:
            raise ModuleNotFoundError("No module named 'llama_index'")

    monkeypatch.setattr(demo, "entry_points", _found(Broken()))

    assert main(["demo", "--framework", "llamaindex"]) == 1
    assert "pip install 'toolkit-core[llamaindex]'" in capsys.readouterr().err


def test_without_a_choice_a_missing_framework_is_named_and_the_other_one_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def entry_points(*, name: str, **_: str) -> list[_Loaded]:
        return [_Loaded(mend)] if name == "langchain" else []

    monkeypatch.setattr(demo, "entry_points", entry_points)

    assert main(["demo"]) == 0
    assert main(["demo", "--framework", "both"]) == 1

    shown = capsys.readouterr()
    assert "llamaindex: not installed" in shown.out
    assert "pip install 'toolkit-core[llamaindex]'" in shown.err


def test_an_agents_run_that_fails_does_not_keep_the_other_from_working(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError("401 invalid key")

    def entry_points(*, name: str, **_: str) -> list[_Loaded]:
        return [_Loaded(refused if name == "langchain" else mend)]

    monkeypatch.setattr(demo, "entry_points", entry_points)

    assert main(["demo"]) == 1

    shown = capsys.readouterr()
    assert "langchain: the agent's run ended with PermissionError: 401 invalid key" in shown.err
    assert "llamaindex: the tests pass" in shown.out


def test_a_file_is_no_workspace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("")

    assert main(["demo", "--workspace", str(tmp_path / "a.txt")]) == 2
    assert "is a file" in capsys.readouterr().err


def test_a_new_folder_gets_the_sample_and_keeps_the_work(tmp_path: Path, demo_of: Callable[[demo.Run], None]) -> None:
    demo_of(mend)

    assert main(["demo", "--workspace", str(tmp_path / "new")]) == 0

    assert suite_passes(tmp_path / "new")


def test_an_own_project_is_worked_in_where_it_is(workspace: Path, demo_of: Callable[[demo.Run], None]) -> None:
    project(workspace)
    (workspace / "mine.txt").write_text("keep")
    demo_of(mend)

    assert main(["demo", "--framework", "langchain", "--workspace", str(workspace)]) == 0

    assert (workspace / "mine.txt").read_text() == "keep"
    assert suite_passes(workspace)


# --- the real agents ---


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    return request.param


def toolkit(*words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as a person starts it."""
    argv = [sys.executable, "-m", "toolkit_core.cli", *words]
    environment = {**os.environ, "PYTHONWARNINGS": "error::DeprecationWarning:toolkit_core"}
    return subprocess.run(argv, capture_output=True, text=True, timeout=110, env=environment, check=False)


def test_an_agent_finds_a_bug_that_moved_recovers_from_its_slip_and_fixes_it(workspace: Path, framework: str) -> None:
    renamed = [("parcels/slip.py", "pages", "sheets"), ("tests/test_slip.py", "pages", "sheets")]
    project(workspace, FIX, *renamed, ("parcels/slip.py", "- 1) //", "+ 1) //"))
    assert not suite_passes(workspace)  # CONTROL: there is a bug

    done = toolkit("demo", "--framework", framework, "--workspace", str(workspace))

    assert done.returncode == 0, done.stdout + done.stderr
    assert suite_passes(workspace)
    assert all(f" {name}(" in done.stdout for name in ("shell", "glob", "grep", "read_file", "edit_file"))
    assert "! Error (no_match): " in done.stdout
    assert f"{framework}: the tests pass" in done.stdout


def test_a_bug_that_cannot_be_fixed_ends_with_1(workspace: Path, framework: str) -> None:
    project(workspace, FIX, ("parcels/slip.py", "return (lines + LINES_PER_PAGE - 1) // LINES_PER_PAGE", "return hash"))

    done = toolkit("demo", "--framework", framework, "--workspace", str(workspace))

    assert done.returncode == 1, done.stdout + done.stderr
    assert not suite_passes(workspace)
    assert "NOT done" in done.stdout
