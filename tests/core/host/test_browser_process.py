"""Programs that stand in for a browser and misbehave; which one is found; what is started."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from pathlib import Path

import pytest

from tests.core.host.web_servers import Net, descriptors_settle_at, open_descriptors
from tests.support import require
from toolkit_core import ToolError, ToolResult
from toolkit_core.host.browser import ChromiumBrowser
from toolkit_core.host.browser_process import find_browser
from toolkit_core.tools import browse_tool

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no browser is started on Windows")


class Stub:
    """A program in place of the browser; it notes its profile and its children."""

    def __init__(self, folder: Path, script: str) -> None:
        self.notes = folder / "notes"
        program = folder / "browser"
        program.write_text(f'#!/bin/bash\necho "$HOME $$" >> {self.notes}\n{script}\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.path = str(program)

    async def render(self, *, seconds: float = 6.0) -> ToolResult:
        tool = browse_tool(ChromiumBrowser(egress=Net(1).egress(), allow_root=True), timeout_seconds=seconds)
        before = open_descriptors()
        result = await tool(url="http://pub.test/")
        assert await descriptors_settle_at(before + 2)
        return result

    def assert_gone(self) -> None:
        profile, pid = self.notes.read_text().split()[:2]
        assert not Path(profile).exists()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            assert os.fsencode(profile) not in environment, (entry / "cmdline").read_bytes()
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


CHILDREN = "sleep 300 & (sleep 300 &) ; setsid sleep 300 & "


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> object:
    require(Path("/bin/bash").exists(), "the stand-ins are bash scripts")

    def make(script: str) -> Stub:
        stub = Stub(tmp_path, script)
        monkeypatch.setenv("TOOLKIT_BROWSER", stub.path)
        return stub

    return make


class Use:
    def __call__(self, script: str) -> Stub: ...  # pragma: no cover


async def test_a_browser_that_hangs_with_children_is_timed_out_and_all_are_gone(use: Use) -> None:
    stub = use(CHILDREN + "sleep 300")
    started = time.monotonic()
    result = await stub.render(seconds=1.0)
    assert result.error is not None
    assert result.error.code == "timed_out"
    assert time.monotonic() - started < 15
    stub.assert_gone()


async def test_a_browser_that_prints_a_whole_dom_and_hangs_is_a_success(use: Use) -> None:
    stub = use(CHILDREN + "echo '<html><title>Printed</title><p>whole</p></html>'; sleep 300")
    result = await stub.render()
    assert not result.is_error, result.text
    assert "# Printed\n\nwhole" in result.text
    stub.assert_gone()


async def test_a_browser_that_prints_half_a_dom_and_hangs_is_timed_out(use: Use) -> None:
    stub = use("echo '<html><p>half'; sleep 300")
    result = await stub.render(seconds=1.0)
    assert result.error is not None
    assert result.error.code == "timed_out"
    stub.assert_gone()


async def test_a_browser_that_floods_its_streams_fills_no_memory_and_no_disk(use: Use) -> None:
    stub = use("yes flood >&2 & yes flood & sleep 300")
    result = await stub.render(seconds=1.5)
    assert result.error is not None
    assert result.error.code == "timed_out"
    stub.assert_gone()


async def test_a_browser_that_exits_is_failed_with_the_end_of_what_it_wrote(use: Use) -> None:
    stub = use("for n in $(seq 5000); do echo line $n >&2; done; echo 'No usable sandbox!' >&2; exit 1")
    result = await stub.render()
    assert result.error is not None
    assert result.error.code == "failed"
    assert "No usable sandbox!" in result.text
    assert "line 1\n" not in result.text
    stub.assert_gone()


@pytest.mark.parametrize(
    "reply",
    [
        "printf 'no json\\0' >&4",
        "printf '[1,2]\\0' >&4",
        'printf \'{"id":1,"result":{}}\\0\' >&4',
        'printf \'{"id":1,"error":{"message":"no"}}\\0\' >&4',
        'printf \'{"id":1,"result":{"targetInfos":5}}\\0\' >&4',
        'printf \'{"method":"Fetch.requestPaused","params":{}}\\0{"method":7}\\0\' >&4',
        "head -c 20000000 /dev/zero | tr '\\0' x >&4",
        "exec 3<&- 4>&-",
    ],
)
async def test_a_browser_that_speaks_nonsense_ends_in_words(use: Use, reply: str) -> None:
    stub = use(f"{reply}; sleep 300")
    result = await stub.render(seconds=2.0)
    assert result.error is not None
    assert result.error.code in ("failed", "timed_out"), result.text
    stub.assert_gone()


async def test_a_browser_that_takes_no_kill_but_the_hard_one_is_gone(use: Use) -> None:
    stub = use("trap '' TERM INT HUP; " + CHILDREN + "while true; do sleep 1; done")
    await stub.render(seconds=0.5)
    stub.assert_gone()


async def test_cancelled_the_tree_is_gone_first(use: Use) -> None:
    stub = use(CHILDREN + "sleep 300")
    call = asyncio.ensure_future(stub.render(seconds=60))
    while not stub.notes.exists():
        await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    stub.assert_gone()


async def test_its_environment_holds_nothing_of_ours(use: Use, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen = tmp_path / "seen"
    stub = use(f"env > {seen}; echo \"$@\" >> {seen}; echo '</html>'; sleep 300")
    await stub.render()
    text = seen.read_text()
    assert "sk-secret" not in text
    assert "--proxy-bypass-list=<-loopback>" in text
    assert "--proxy-server=http://127.0.0.1:" in text
    stub.assert_gone()


def test_the_named_browser_wins_and_a_missing_one_is_named() -> None:
    assert find_browser({"TOOLKIT_BROWSER": "bash", "PATH": "/usr/bin:/bin"}).endswith("/bash")
    with pytest.raises(ToolError) as missing:
        find_browser({"TOOLKIT_BROWSER": "/no/such/browser", "PATH": "/usr/bin"})
    assert missing.value.code == "unavailable"
    assert "/no/such/browser" in missing.value.message


def test_the_first_known_name_on_the_path_is_taken(tmp_path: Path) -> None:
    for name in ("chromium", "google-chrome"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert find_browser({"PATH": str(tmp_path)}) == str(tmp_path / "google-chrome")


async def test_without_a_browser_everything_that_was_looked_for_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLKIT_BROWSER", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    result = await browse_tool(ChromiumBrowser(egress=Net(1).egress(), allow_root=True))(url="http://pub.test/")
    assert result.error is not None
    assert result.error.code == "unavailable"
    for name in ("google-chrome", "chromium", "microsoft-edge", "TOOLKIT_BROWSER"):
        assert name in result.text


async def test_a_file_that_is_no_program_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "browser"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    monkeypatch.setenv("TOOLKIT_BROWSER", str(program))
    before = open_descriptors()
    result = await browse_tool(ChromiumBrowser(egress=Net(1).egress(), allow_root=True))(url="http://pub.test/")
    assert result.error is not None
    assert result.error.code == "unavailable"
    assert await descriptors_settle_at(before)
