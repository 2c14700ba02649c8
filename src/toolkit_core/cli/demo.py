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
from typing import Literal

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
Outcome = Literal["the tests pass", "NOT done", "not installed"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--framework", choices=[*_EXTRA_OF, "both"], help="whose agent (default: all that are installed)"
    )
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="a real model instead of the scripted one")
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="work in this folder's project; a new or empty folder gets the sample project (default: a temporary one)",
    )


def run(options: argparse.Namespace) -> int:
    """Let each framework's agent do the job; 0 only if the tests pass after each.

    Without `--framework` one that is not installed is only named, as long as another is there.
    """
    names = list(_EXTRA_OF) if options.framework in (None, "both") else [options.framework]
    if options.workspace is not None and Path(options.workspace).is_file():
        complain(f"toolkit demo: {options.workspace} is a file; --workspace takes a folder")
        return 2
    with _workspace(options.workspace) as workspace:
        before = _files(workspace)
        outcomes: dict[str, Outcome] = {}
        for name in names:
            _put_back(workspace, before)
            outcomes[name] = _one(name, workspace, options.model)
    say()
    for name, outcome in outcomes.items():
        say(f"{name}: {outcome}", "good" if outcome == "the tests pass" else "bad")
    judged = [o for o in outcomes.values() if o != "not installed" or options.framework is not None]
    return 0 if judged and all(outcome == "the tests pass" for outcome in judged) else 1


def _one(name: str, workspace: Path, model: str | None) -> Outcome:
    say(f"\n=== {name}: {model or 'a scripted model, offline'}; workspace {workspace}", "title")
    command = f"{_quoted(sys.executable)} -B -m unittest"
    job = DemoJob(str(workspace), _TASK.format(command=command), model, command)
    tests_before = _fingerprint(workspace)
    try:
        _find(name)(job, say)
    except _NotInstalledError as e:
        complain(f"{name}: {e}")
        return "not installed"
    except DemoUnavailable as e:
        complain(f"{name}: {e}")
        return "NOT done"
    except Exception as e:  # noqa: BLE001 - a provider's failure ends this agent's demo, not the other's
        complain(f"{name}: the agent's run ended with {type(e).__name__}: {e}")
        return "NOT done"
    passed, output = _tests_pass(workspace)
    if _fingerprint(workspace) != tests_before:
        say("The tests were changed, which is no fix.", "bad")
        return "NOT done"
    say(f"\nchecked in a fresh process: {output.splitlines()[-1] if output else 'no output'}", "faint")
    return "the tests pass" if passed else "NOT done"


class _NotInstalledError(DemoUnavailable):
    """The framework itself is missing."""


def _find(name: str) -> Run:
    """The framework's part of the demo. Raises `_NotInstalledError`."""
    found: list[EntryPoint] = list(entry_points(group="toolkit.demo", name=name))
    if not found:
        raise _NotInstalledError(f"no demo is installed for it; {install_command(_EXTRA_OF[name])}")
    try:
        return found[0].load()
    except ModuleNotFoundError as e:
        raise _NotInstalledError(f"{e}\nIt is installed with: {install_command(_EXTRA_OF[name])}") from e


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
