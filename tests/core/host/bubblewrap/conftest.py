"""Places that a sandbox can see: /tmp, where pytest works, is private inside it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import require
from toolkit_core.host.bubblewrap import probe

_PRIVATE = ("/tmp", "/var/tmp", "/run", "/dev")


def _places() -> Iterator[str]:
    if os.geteuid() == 0:
        yield "/srv"
    yield os.path.expanduser("~")
    yield os.path.dirname(__file__)


@pytest.fixture(scope="session")
def visible() -> Iterator[Path]:
    """A folder outside of what the sandbox makes private."""
    for place in _places():
        if os.access(place, os.W_OK) and not place.startswith(_PRIVATE):
            folder = Path(tempfile.mkdtemp(prefix="toolkit-sandbox-", dir=place))
            folder.chmod(0o755)
            break
    else:
        pytest.fail("no folder outside of /tmp can be written")
    yield folder
    for current, _, _ in os.walk(folder):
        os.chmod(current, 0o700)
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def state(base: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records and quarantine of the tests lie apart from the user's own."""
    folder = base / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture
def base(visible: Path) -> Path:
    """A fresh folder for one test."""
    return Path(tempfile.mkdtemp(dir=visible))


@pytest.fixture
def workspace(base: Path) -> Path:
    """An empty workspace for one test."""
    folder = base / "ws"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """Bubblewrap starts on this machine."""
    found = probe()
    require(found.available, f"bubblewrap: {found.reason} {found.fix}")


@pytest.fixture
def stub(base: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a bwrap of one's own making first on PATH."""

    def make(script: str) -> Path:
        folder = base / "bin"
        folder.mkdir(exist_ok=True)
        program = folder / "bwrap"
        program.write_text(script)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        return program

    return make
