from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest

from toolkit_core.cli import COMMANDS, main
from toolkit_core.cli.call import read_arguments
from toolkit_core.cli.examining import examine, install_command
from toolkit_core.errors import ToolError


def test_help_names_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])

    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)


@pytest.mark.parametrize("argv", [[], ["dance"], ["call"]])
def test_wrong_usage_is_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(argv)

    assert end.value.code == 2
    assert "usage: toolkit" in capsys.readouterr().err


def test_the_command_runs_as_a_module_and_a_closed_pipe_is_quiet() -> None:
    argv = [sys.executable, "-m", "toolkit_core.cli", "tools", "--json"]

    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode in {0, 1}


# --- tools ---


def test_tools_lists_the_default_set_with_its_risks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(r"read_file +inspect +\w+", line) for line in lines)
    assert any(re.match(r"shell +execute +\w+", line) for line in lines)


def test_tools_read_only_lists_nothing_that_changes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "--read-only", "--json"]) == 0

    listed = json.loads(capsys.readouterr().out)
    assert {"read_file", "glob", "grep"} <= {tool["name"] for tool in listed}
    assert not any(tool["effects"]["writes"] or tool["effects"]["executes"] for tool in listed)


def test_tools_shows_one_as_a_model_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "grep"]) == 0

    shown = capsys.readouterr().out
    assert '"context_lines"' in shown


def test_an_unknown_tool_is_2_and_the_known_ones_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "nope"]) == 2
    assert main(["call", "nope"]) == 2

    assert capsys.readouterr().err.count("read_file") == 2


# --- call ---


def test_call_prints_what_a_model_reads(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")

    assert main(["call", "read_file", "path=a.txt", "limit=1", "--cwd", str(workspace)]) == 0

    shown = capsys.readouterr().out
    assert "     1\tone" in shown
    assert "two" not in shown


def test_call_ends_with_1_on_an_error_result(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "read_file", "path=absent", "--cwd", str(workspace)]) == 1

    assert capsys.readouterr().out.startswith("Error (not_found): ")


def test_call_json_is_the_whole_envelope(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (workspace / "a.txt").write_text("x = 1\n")

    assert main(["call", "--json", "grep", "pattern=x", "--cwd", str(workspace)]) == 0

    envelope = json.loads(capsys.readouterr().out)
    assert set(envelope) == {"content", "data", "error"}
    assert envelope["data"]["rows"][0]["path"] == "a.txt"


def test_call_edits_without_an_earlier_read(workspace: Path) -> None:
    (workspace / "a.txt").write_text("x = 1\n")
    edits = '[{"old_text": "x = 1", "new_text": "x = 2"}]'

    assert main(["call", "edit_file", "path=a.txt", f"edits={edits}", "--cwd", str(workspace)]) == 0

    assert (workspace / "a.txt").read_text() == "x = 2\n"


def test_call_takes_a_string_as_it_was_typed(workspace: Path) -> None:
    assert main(["call", "write_file", "path=n.txt", "content=123", "--cwd", str(workspace)]) == 0
    assert main(["call", "write_file", "path=e.txt", "content=a=b", "--cwd", str(workspace)]) == 0

    assert (workspace / "n.txt").read_text() == "123"
    assert (workspace / "e.txt").read_text() == "a=b"


SCHEMA = {"properties": {"text": {"type": "string"}, "count": {"type": "integer"}, "list": {"type": "array"}}}


def test_words_become_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("body.txt").write_text("from a file\n", encoding="utf-8")
    Path("all.json").write_text('{"text": "whole", "count": 1}')

    words = ["@all.json", "text=@body.txt", "list=[1, 2]", "unknown=[3]"]

    assert read_arguments(words, SCHEMA) == {
        "text": "from a file\n",
        "count": 1,
        "list": [1, 2],
        "unknown": "[3]",
    }


@pytest.mark.parametrize("word", ["nonsense", "[1]", "@absent.json", "text=@absent"])
def test_a_word_that_says_no_argument_is_2(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["call", "read_file", word]) == 2

    assert "toolkit call: " in capsys.readouterr().err


# --- doctor ---


def test_doctor_names_what_this_machine_has(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor"])

    shown = capsys.readouterr().out
    assert code in {0, 1}
    assert all(name in shown for name in ("python", "ripgrep", "shell", "bubblewrap", "chromium", "langchain-core"))


def test_doctor_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    control = {finding.name: finding for finding in examine()}
    assert control["git"].state == "ok"
    assert control["rich"].state == "ok"

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TOOLKIT_BROWSER", raising=False)
    monkeypatch.setattr("importlib.metadata.version", _nothing_is_installed)
    found = {finding.name: finding for finding in examine()}

    assert {found[name].state for name in ("git", "bubblewrap", "docker", "chromium", "rich")} == {"lacking"}
    assert "git" in found["git"].advice
    assert "TOOLKIT_BROWSER" in found["chromium"].advice
    assert found["langchain"].advice == "pip install 'toolkit-core[langchain-agents]'"


def test_doctor_ends_with_1_when_a_default_tool_cannot_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor"]) == 0  # CONTROL

    monkeypatch.setattr("toolkit_core.host.shells.find_shell", no_shell)

    assert main(["doctor"]) == 1
    assert "!!  shell" in capsys.readouterr().out


def no_shell() -> tuple[str, str]:
    raise ToolError("There is no shell.", code="unavailable")


def test_doctor_says_that_grep_works_without_ripgrep(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("toolkit_core.host.ripgrep.find_ripgrep", lambda: None)

    assert main(["doctor"]) == 0
    assert "grep uses Python's re without it" in capsys.readouterr().out


def _nothing_is_installed(distribution: str) -> str:
    raise PackageNotFoundError(distribution)


def test_doctor_json_is_machine_readable(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--json"])

    assert {"group", "name", "state", "detail", "advice"} == set(json.loads(capsys.readouterr().out)[0])


def test_install_commands_are_quoted_for_zsh() -> None:
    assert install_command("cli") == "pip install 'toolkit-core[cli]'"


def test_every_extra_that_doctor_names_exists() -> None:
    extras = set(metadata("toolkit-core").get_all("Provides-Extra") or [])
    named = {match[1] for finding in examine() for match in re.finditer(r"toolkit-core\[([\w-]+)\]", finding.advice)}
    assert named <= extras
