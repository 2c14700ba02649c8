"""`toolkit demo`: an agent of each framework fixes a bug with the same tools, while you watch.

The command knows no framework: each adapter brings its part through the entry point group "toolkit.demo". Whether
the bug is fixed is judged here, by running the project's tests in a fresh process.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from toolkit_core.cli.console import complain, say
from toolkit_core.cli.demo_job import DemoJob, DemoUnavailable
from toolkit_core.cli.examining import install_command
from toolkit_core.limits import DEMO_CHECK_SECONDS

HELP = "watch agents fix a bug with the toolkit's tools; offline, no key needed"

_SAMPLE = Path(__file__).with_name("sample")
_EXTRA_OF = {"langchain": "langchain-agents", "llamaindex": "llamaindex"}
_IGNORED = {".git", ".hg", ".venv", "venv", "node_modules", "__pycache__"}

_TASK = """\
A test of the project in your working folder fails. Find the bug with your tools (glob, grep, read_file), fix it in \
the code with edit_file, and run the tests with shell until they pass. Do not change the tests.
The tests are run with: {command}"""

Run = Callable[[DemoJob, Callable[[str], None]], None]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--framework", choices=["langchain", "llamaindex", "both"], default="both")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="a real model instead of the scripted one")
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="work in this folder's project; a new or empty folder gets the sample project (default: a temporary one)",
    )


def run(options: argparse.Namespace) -> int:
    """Let each framework's agent do the job; 0 only if the tests pass after each."""
    names = ["langchain", "llamaindex"] if options.framework == "both" else [options.framework]
    with _workspace(options.workspace) as workspace:
        before = _files(workspace)
        done: dict[str, bool] = {}
        for name in names:
            _put_back(workspace, before)
            done[name] = _one(name, workspace, options.model)
    say()
    for name, passed in done.items():
        say(f"{name}: {'the tests pass' if passed else 'NOT done'}", "good" if passed else "bad")
    return 0 if all(done.values()) else 1


def _one(name: str, workspace: Path, model: str | None) -> bool:
    who = model or "a scripted model, offline"
    say(f"\n=== {name}: {who}; workspace {workspace}", "title")
    python = _quoted(sys.executable)
    command = f"{python} -B -m unittest"
    job = DemoJob(str(workspace), _TASK.format(command=command), model, command)
    tests_before = _fingerprint(workspace)
    try:
        _find(name)(job, say)
    except DemoUnavailable as e:
        complain(f"{name}: {e}")
        return False
    passed, output = _tests_pass(workspace)
    if _fingerprint(workspace) != tests_before:
        say("The tests were changed, which is no fix.", "bad")
        return False
    say(f"\nchecked in a fresh process: {output.splitlines()[-1] if output else 'no output'}", "faint")
    return passed


def _find(name: str) -> Run:
    """The framework's part of the demo. Raises `DemoUnavailable` where it is not installed."""
    found: list[EntryPoint] = list(entry_points(group="toolkit.demo", name=name))
    if not found:
        raise DemoUnavailable(f"no demo is installed for it; {install_command(_EXTRA_OF[name])}")
    try:
        return found[0].load()
    except ModuleNotFoundError as e:
        raise DemoUnavailable(f"{e}\nIt is installed with: {install_command(_EXTRA_OF[name])}") from e


@contextmanager
def _workspace(chosen: str | None) -> Generator[Path]:
    if chosen is None:
        with tempfile.TemporaryDirectory(prefix="toolkit-demo-", ignore_cleanup_errors=True) as folder:
            yield _with_sample(Path(folder) / "parcels")
        return
    folder = Path(chosen).expanduser().absolute()
    yield folder if folder.is_dir() and any(folder.iterdir()) else _with_sample(folder)


def _with_sample(folder: Path) -> Path:
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(_SAMPLE, folder, dirs_exist_ok=True, ignore=ignore)).resolve()


def _python_files(workspace: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(workspace):
        folders[:] = [name for name in folders if name not in _IGNORED]
        yield from (Path(folder, name) for name in names if name.endswith(".py"))


def _files(workspace: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in _python_files(workspace)}


def _put_back(workspace: Path, before: dict[Path, bytes]) -> None:
    """Each agent starts from the same code."""
    for path, content in before.items():
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def _fingerprint(workspace: Path) -> dict[Path, str]:
    tests = (path for path in _python_files(workspace) if path.name.startswith("test"))
    return {path: sha256(path.read_bytes()).hexdigest() for path in tests}


def _tests_pass(workspace: Path) -> tuple[bool, str]:
    """Run the tests in a fresh process; they pass only if there are any."""
    argv = [sys.executable, "-B", "-m", "unittest"]
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, over the project the person named
            argv,
            cwd=workspace,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEMO_CHECK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False, f"the tests did not end within {DEMO_CHECK_SECONDS} s"
    return done.returncode == 0 and "Ran 0 tests" not in done.stderr, done.stderr.strip()


def _quoted(path: str) -> str:
    """As the shell tool's shell reads it: PowerShell on Windows."""
    return "& '" + path.replace("'", "''") + "'" if sys.platform == "win32" else shlex.quote(path)
