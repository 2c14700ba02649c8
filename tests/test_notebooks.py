"""Each notebook runs, offline, and shows what its committed outputs show; `--write-notebooks` writes them anew."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import require

if TYPE_CHECKING:
    from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NEEDS_LINUX = {"05_sandbox_and_long_output.ipynb"}
VOLATILE = re.compile(r"0x[0-9a-f]{6,}|/tmp/|/home/|\b20\d\d-\d\d-\d\d\b")


def read(path: Path) -> NotebookNode:
    import nbformat

    return nbformat.read(path, as_version=4)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  (untyped)


def run(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """The notebook as a fresh kernel leaves it; a cell that fails fails the test."""
    from nbclient import NotebookClient

    # a history and a configuration of this machine's user stay out of it
    client = NotebookClient(notebook, timeout=100, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    asyncio.run(client.async_execute(env={**os.environ, "IPYTHONDIR": str(folder / "ipython")}))
    return notebook


def normal(notebook: Any) -> dict[str, Any]:
    """What of a notebook a reader sees."""
    plain = json.loads(json.dumps(notebook))
    cells = [_normal_cell(cell) for cell in plain["cells"]]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": _METADATA, "cells": cells}


_METADATA = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def _normal_cell(cell: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": {}, "source": cell["source"]}
    if cell["cell_type"] != "code":
        return kept
    outputs: list[dict[str, Any]] = []
    for output in cell["outputs"]:
        shown = {key: value for key, value in output.items() if key != "transient"}
        if "data" in shown:
            shown["metadata"] = {}
        if shown["output_type"] == "stream" and outputs and outputs[-1].get("name") == shown["name"]:
            outputs[-1]["text"] += shown["text"]
        else:
            outputs.append(shown)
    return {**kept, "execution_count": cell["execution_count"], "outputs": outputs}


def written(notebook: dict[str, Any]) -> str:
    import nbformat

    return nbformat.writes(nbformat.from_dict(notebook)) + "\n"  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]  (untyped)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_fresh_run_shows_what_is_committed(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    require(find_spec("nbclient") and find_spec("ipykernel"), "nbclient and ipykernel (the extra dev)")
    if path.name in NEEDS_LINUX:
        require(_has_bubblewrap(), "a bubblewrap that may make namespaces")
    committed = read(path)
    ran = normal(run(copy.deepcopy(committed), tmp_path))

    if request.config.getoption("--write-notebooks"):
        path.write_text(written(ran), encoding="utf-8")
    for now, before in zip(ran["cells"], normal(committed)["cells"], strict=True):
        if not request.config.getoption("--write-notebooks"):
            assert now == before, f"{path.name}, {now['id']}; look, then run with --write-notebooks"
    assert not VOLATILE.search(json.dumps([cell.get("outputs") for cell in ran["cells"]])), "an output that changes"


def _has_bubblewrap() -> bool:
    code = (
        "import asyncio, toolkit_core as t, tempfile\n"
        "tools = t.default_tools((d := tempfile.mkdtemp()), sandbox=t.BubblewrapSandbox(d))\n"
        "r = asyncio.run(tools['shell'](command='true'))\n"
        "raise SystemExit(r.is_error)"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False).returncode == 0


def test_control_a_changed_output_is_found() -> None:
    committed = normal(read(NOTEBOOKS[0]))
    changed = copy.deepcopy(committed)
    cell = next(cell for cell in changed["cells"] if cell.get("outputs"))
    cell["outputs"][0]["data"] = {"text/plain": "another"}

    assert changed != committed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_a_sentence_and_ends_with_an_assertion(path: Path) -> None:
    cells = read(path)["cells"]
    assertions = [
        cell for cell in cells if cell["cell_type"] == "code" and re.search(r"^assert ", cell["source"], re.M)
    ]

    assert cells[0]["cell_type"] == "markdown"
    assert assertions == [cells[-1]]
    assert not re.search(r"api_key|token", json.dumps(cells))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_committed_output_holds_a_script_or_a_remote_source(path: Path) -> None:
    pages = [
        "".join(output["data"]["text/html"])
        for cell in read(path)["cells"]
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]

    assert pages
    assert not any(re.search(r"<script|<style|<iframe|src='http|href=", page) for page in pages)
