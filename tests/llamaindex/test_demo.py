"""The LlamaIndex leaf of `toolkit demo`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from toolkit_core import cli
from toolkit_core.cli.demo_job import DemoJob, DemoUnavailable
from toolkit_llamaindex.demo import run
from toolkit_llamaindex.testing import ScriptedModel, tool_call

TESTS = [sys.executable, "-B", "-m", "unittest"]


def job(workspace: Path, *, model: str | None = None) -> DemoJob:
    return DemoJob(str(workspace), "A test fails. Fix the bug.", model, " ".join(TESTS))


def passing(workspace: Path) -> bool:
    return subprocess.run(TESTS, cwd=workspace, capture_output=True, timeout=60, check=False).returncode == 0


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    shutil.copytree(Path(cli.__file__).with_name("sample"), tmp_path / "sample")
    return tmp_path / "sample"


def test_the_agent_finds_and_fixes_the_bug(sample: Path) -> None:
    assert not passing(sample)  # CONTROL
    said: list[str] = []
    run(job(sample), said.append)
    assert passing(sample)
    transcript = "\n".join(said)
    for part in ("grep(", "read_file(", "Error (no_match)", "edit_file(", "shell(", "Fixed: "):
        assert part in transcript


def test_it_says_so_when_there_is_nothing_to_fix(tmp_path: Path) -> None:
    (tmp_path / "test_ok.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_ok(self):\n        pass\n"
    )
    said: list[str] = []
    run(job(tmp_path), said.append)
    assert said[-1].startswith("\nmodel: All tests pass")


@pytest.mark.parametrize(
    ("model", "part"),
    [
        ("nonsense", "provider:name"),
        ("nobody:gpt", "provider:name"),
        ("groq:llama", "llama-index-llms-groq"),
    ],
)
def test_a_model_that_cannot_be_had_is_named(sample: Path, model: str, part: str) -> None:
    with pytest.raises(DemoUnavailable, match=part):
        run(job(sample, model=model), lambda line: None)


class StandIn(ScriptedModel):
    """The provider's class; a real model would be here."""

    def __init__(self, model: str = "", turns: Sequence[Any] = (), **options: Any) -> None:
        super().__init__([[f"I am {model}.", tool_call("glob", pattern="*")], "It is hopeless."], **options)


def test_a_real_model_is_made_of_its_providers_class(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType("llama_index.llms.groq")
    module.Groq = StandIn
    monkeypatch.setitem(sys.modules, "llama_index.llms.groq", module)
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(DemoUnavailable, match="GROQ_API_KEY"):
        run(job(sample, model="groq:llama"), lambda line: None)
    monkeypatch.setenv("GROQ_API_KEY", "x")
    said: list[str] = []
    run(job(sample, model="groq:llama"), said.append)
    assert "I am llama." in "\n".join(said)
    assert said[-1] == "\nmodel: It is hopeless."
