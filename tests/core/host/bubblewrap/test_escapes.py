"""Every known way out, tried inside; where harmless, first shown to lead out without the sandbox.

One worker process a user tries all of them, a few at once; each test reads its own outcome.
"""

from __future__ import annotations

import functools
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import tests
import toolkit_core
from tests.core.host.bubblewrap.escapes import ESCAPES, Escape
from tests.support import require

pytestmark = pytest.mark.usefixtures("bubblewrap")

ME = "root" if os.geteuid() == 0 else "self"
USERS = [ME, *(["nobody"] if ME == "root" else [])]
WORKER = "tests/core/host/bubblewrap/worker.py"
WORKER_SECONDS = 240


def _runnable_by_others(python: str) -> bool:
    try:
        done = subprocess.run(
            [python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"], user="nobody", check=False
        )
    except OSError:
        return False
    return done.returncode == 0


def _copied_code(folder: Path) -> Path:
    """Package and worker where anybody can read them."""
    for package in (toolkit_core, tests):
        source = Path(package.__path__[0])
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@functools.cache
def outcomes(user: str, visible: Path) -> dict[str, Any]:
    base = Path(tempfile.mkdtemp(dir=visible))
    base.chmod(0o755)
    home = base / "home"
    home.mkdir()
    python = sys.executable
    if user == "nobody":
        os.chown(home, pwd.getpwnam("nobody").pw_uid, -1)
        candidates = [os.path.realpath(sys.executable), "/usr/bin/python3"]
        python = next(filter(_runnable_by_others, candidates), "")
        require(python, "a Python 3.11 that another user can start")
    code = _copied_code(base / "code")
    done = subprocess.run(
        [python, str(code / WORKER), str(home / "b")],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "HOSTSECRET": "HOSTSECRET",
            "PYTHONPATH": str(code),
        },
        user=user if user == "nobody" else None,
        group="nogroup" if user == "nobody" else None,
        extra_groups=[] if user == "nobody" else None,
        timeout=WORKER_SECONDS,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(params=USERS)
def found(request: pytest.FixtureRequest, visible: Path) -> dict[str, Any]:
    return outcomes(request.param, visible)


def named(*expected: str) -> pytest.MarkDecorator:
    chosen = [escape for escape in ESCAPES if escape.expected in expected]
    return pytest.mark.parametrize("escape", chosen, ids=[escape.name for escape in chosen])


@named("held")
@pytest.mark.timeout(WORKER_SECONDS)
def test_holds(escape: Escape, found: dict[str, Any]) -> None:
    if escape.unguarded:
        assert found[f"{escape.name}:unguarded"]["out"], "the control did not get out: the attempt proves nothing"
    outcome = found[f"{escape.name}:guarded"]
    assert outcome["out"] == [], outcome["text"]


@named("allowed")
@pytest.mark.timeout(WORKER_SECONDS)
def test_legitimate_use_works_in_strict_mode_too(escape: Escape, found: dict[str, Any]) -> None:
    for mode in ("guarded", "strict"):
        outcome = found[f"{escape.name}:{mode}"]
        assert outcome["legitimate"], outcome["text"]
        assert outcome["out"] == []


@named("gap")
@pytest.mark.timeout(WORKER_SECONDS)
def test_what_the_threat_model_calls_a_gap_is_one(escape: Escape, found: dict[str, Any]) -> None:
    assert found[f"{escape.name}:guarded"]["out"], "it holds by now: THREAT_MODEL.md can promise it"


@named("breaks")
@pytest.mark.timeout(WORKER_SECONDS)
def test_what_the_threat_model_says_breaks_does(escape: Escape, found: dict[str, Any]) -> None:
    assert not found[f"{escape.name}:guarded"]["legitimate"]


@pytest.mark.timeout(WORKER_SECONDS)
def test_strict_closes_fifos_outside(found: dict[str, Any]) -> None:
    assert found["fs-fifo-outside:unguarded"]["out"]
    assert found["fs-fifo-outside:strict"]["out"] == []


@pytest.mark.timeout(WORKER_SECONDS)
def test_a_trust_input_with_a_second_name_is_never_approved_unseen(found: dict[str, Any]) -> None:
    assert found["ti-git-write:guarded"]["approved"]
    assert not found["ti-hardlink-trust:guarded"]["approved"]


@pytest.mark.timeout(WORKER_SECONDS)
def test_a_trust_input_that_the_host_replaced_meanwhile_is_reported(found: dict[str, Any]) -> None:
    assert ".mcp.json was replaced by another program" in found["ti-host-rename-over:guarded"]["note"]
    assert found["ti-host-rename-over-git-inner:guarded"]["note"] == ""


@pytest.mark.timeout(WORKER_SECONDS)
def test_what_was_planted_is_named_and_kept(found: dict[str, Any]) -> None:
    note = found["ti-create-absent:guarded"]["note"]
    assert all(name in note for name in (".vscode", "AGENTS.md", ".envrc", ".bashrc", "quarantine"))


@pytest.mark.timeout(WORKER_SECONDS)
def test_descriptors_that_the_host_left_inheritable_do_not_get_in(found: dict[str, Any]) -> None:
    assert found["leak"] == "orig"
