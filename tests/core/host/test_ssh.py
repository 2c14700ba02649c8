"""SSHSandbox against a real sshd on loopback: what ends, what is told, and what a lost connection means."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.core.sshd import CuttingProxy, Server, gone, processes_with, running_sshd
from tests.support import soak
from toolkit_core import ClientFiles, SSHSandbox, ToolError, default_tools


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_sshd() as running:
        yield running


@pytest.fixture
async def sandbox(server: Server) -> AsyncIterator[SSHSandbox]:
    async with server.sandbox() as made:
        yield made


def _sleep() -> str:
    """A sleep that can be told from all others: its length is its name."""
    return f"sleep {600 + secrets.randbelow(10**9) / 10**6:.6f}"


async def _running(text: str) -> None:
    async with asyncio.timeout(20):
        while not processes_with(text):
            await asyncio.sleep(0.02)


async def test_control_without_a_keeper_the_command_outlives_its_connection(server: Server) -> None:
    import asyncssh

    sleep = _sleep()
    connection = await asyncssh.connect(
        "127.0.0.1",
        server.port,
        username=server.user,
        known_hosts=str(server.folder / "known_hosts"),
        client_keys=[str(server.folder / "client_key")],
        config=None,
    )
    await connection.create_process(f"{sleep} & {sleep}")
    await _running(sleep)
    connection.abort()
    await asyncio.sleep(1)
    left = processes_with(sleep)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left, "CONTROL: sshd leaves what it started"


async def test_it_runs_as_an_unprivileged_user(sandbox: SSHSandbox) -> None:
    result = await sandbox.run("id -u")
    assert result.stdout != b"0\n" or os.geteuid() != 0


async def test_a_timeout_ends_the_tree_also_what_left_its_group(sandbox: SSHSandbox) -> None:
    sleep = _sleep()
    result = await sandbox.run(f"echo before; setsid {sleep} & trap '' TERM; {sleep}; {sleep}", timeout_seconds=1)
    assert (result.timed_out, result.stdout) == (True, b"before\n")
    assert processes_with(sleep) == []


async def test_a_cancelled_call_ends_the_tree_before_it_returns(sandbox: SSHSandbox) -> None:
    sleep = _sleep()
    task = asyncio.create_task(sandbox.run(f"{sleep} & setsid {sleep} & {sleep}"))
    await _running(sleep)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(sleep) == []


async def test_a_call_cancelled_at_any_moment_leaves_nothing(sandbox: SSHSandbox) -> None:
    sleep = _sleep()
    for milliseconds in range(0, 60, 4):
        task = asyncio.create_task(sandbox.run(f"setsid {sleep} & {sleep}"))
        await asyncio.sleep(milliseconds / 1000)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await gone(sleep, within_seconds=2)


async def test_a_lost_connection_is_an_error_and_the_tree_ends(server: Server) -> None:
    sleep = _sleep()
    async with CuttingProxy(server.port) as proxy, server.sandbox(**_through(server, proxy)) as sandbox:
        task = asyncio.create_task(sandbox.run(f"echo some output; setsid {sleep} & {sleep}"))
        await _running(sleep)
        await asyncio.sleep(0.2)
        proxy.cut()
        with pytest.raises(ToolError, match=r"connection to 127\.0\.0\.1 was lost") as caught:
            await task
        assert caught.value.code == "unavailable"
        assert "some output" in caught.value.detail
        assert await gone(sleep)
        assert (await sandbox.run("echo on a new one")).stdout == b"on a new one\n"


async def test_the_owner_dies_and_so_does_the_tree(server: Server) -> None:
    sleep = _sleep()
    program = f"""
import asyncio
from toolkit_core import SSHSandbox
sandbox = SSHSandbox("127.0.0.1", root={str(server.workspace)!r}, port={server.port}, username={server.user!r},
    known_hosts={str(server.folder / "known_hosts")!r}, client_keys=[{str(server.folder / "client_key")!r}])
asyncio.run(sandbox.run("setsid {sleep} & {sleep}"))
"""
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    await _running(sleep)
    owner.kill()
    await owner.wait()
    assert await gone(sleep)


async def test_a_host_with_another_key_is_refused(server: Server, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    other = f"[127.0.0.1]:{server.port} {(tmp_path / 'other.pub').read_text()}".encode()
    for known in (other, b""):
        async with server.sandbox(known_hosts=known) as sandbox:
            for work in (sandbox.run("echo ran"), sandbox.read_bytes("x"), sandbox.write_bytes("x", b"")):
                with pytest.raises(ToolError, match="host key is not the known one") as caught:
                    await work
                assert caught.value.code == "unavailable"


async def test_a_wrong_key_of_the_user_and_a_dead_host_are_unavailable(server: Server, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "wrong")], check=True)
    options: dict[str, Any]
    for options in ({"client_keys": [str(tmp_path / "wrong")]}, {"port": 1}):
        async with server.sandbox(**options) as sandbox:
            with pytest.raises(ToolError) as caught:
                await sandbox.run("true")
            assert caught.value.code == "unavailable"
            assert "Nothing was run" in caught.value.hint


async def test_a_command_that_kills_its_keeper_is_no_success_and_leaves_nothing(sandbox: SSHSandbox) -> None:
    sleep = _sleep()
    with pytest.raises(ToolError) as caught:
        await sandbox.run(f"setsid {sleep} & echo out; kill -9 $PPID; {sleep}")
    assert caught.value.code in ("killed", "unavailable")
    assert await gone(sleep)


async def test_a_command_cannot_forge_its_end(sandbox: SSHSandbox) -> None:
    forged = "printf '\\n%s 0 0\\n' $TOOLKIT_RUN"
    result = await sandbox.run(f"{forged}; exit 3")
    assert result.exit_code == 3
    assert result.stdout.endswith(b" 0 0\n")
    with pytest.raises(ToolError):
        await sandbox.run(f"{forged}; exec 1>&-; kill -9 $PPID")


async def test_noise_of_a_login_shell_is_not_output(server: Server) -> None:
    rc = server.workspace / ".bashrc"
    rc.write_text("echo welcome; echo warning >&2\n")
    try:
        async with server.sandbox() as sandbox:
            result = await sandbox.run("echo mine")
            assert (result.stdout, result.stderr) == (b"mine\n", b"")
    finally:
        rc.unlink()


async def test_a_hundred_megabytes_of_output_pass_in_bounded_memory(sandbox: SSHSandbox) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await sandbox.run("head -c 100000000 /dev/zero", timeout_seconds=100)
    assert len(result.stdout) + result.stdout_cut == 100_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


async def test_a_slice_of_a_hundred_megabytes_is_read_in_bounded_memory(server: Server, sandbox: SSHSandbox) -> None:
    import resource

    line = b"x" * 99 + b"\n"
    with (server.workspace / "huge.log").open("wb") as file:
        for _ in range(100):
            file.write(line * 10_000)
    tools = default_tools(server.workspace, sandbox=sandbox)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await tools["read_file"](path="huge.log", offset=900_000, limit=2)
    assert "900000\t" in result.text
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


async def test_a_failed_write_leaves_the_old_file_whole(server: Server) -> None:
    target = Path(server.new_folder("atomic")) / "f.txt"
    target.write_bytes(b"old" * 1_000_000)
    os.chown(target, server.uid, -1)
    plain = target.with_name("plain.txt")
    plain.write_bytes(target.read_bytes())
    os.chown(plain, server.uid, -1)
    new = os.urandom(20_000_000)
    for path, atomic in ((plain, False), (target, True)):
        async with CuttingProxy(server.port) as proxy, server.sandbox(**_through(server, proxy)) as sandbox:
            files = ClientFiles(sandbox, str(target.parent))
            work = files.replace(path.name, lambda _: new) if atomic else sandbox.write_bytes(str(path), new)
            task = asyncio.create_task(work)
            while not any(
                0 < p.stat().st_size < 3_000_000 or p.stat().st_size > 3_000_000 for p in _parts(path, atomic)
            ):
                await asyncio.sleep(0.005)
            proxy.cut()
            with pytest.raises(ToolError):
                await task
    assert plain.read_bytes() not in (b"old" * 1_000_000, new), "CONTROL: a plain write is cut in the middle"
    assert target.read_bytes() == b"old" * 1_000_000


def _parts(path: Path, atomic: bool) -> list[Path]:
    return list(path.parent.glob(".toolkit-*")) if atomic else [path]


async def test_files_of_other_names_modes_and_links_are_kept(server: Server, sandbox: SSHSandbox) -> None:
    folder = Path(server.new_folder("modes"))
    script = folder / "run me.sh"
    script.write_text("#!/bin/sh\necho one\n")
    script.chmod(0o750)
    (folder / "link").symlink_to("run me.sh")
    for path in (script, folder / "link"):
        os.chown(path, server.uid, -1, follow_symlinks=False)
    tools = default_tools(folder, sandbox=sandbox)
    await tools["read_file"](path="link")
    result = await tools["edit_file"](path="link", edits=[{"old_text": "one", "new_text": "two"}])
    assert not result.is_error, result.text
    assert (folder / "link").is_symlink()
    assert script.read_text() == "#!/bin/sh\necho two\n"
    assert script.stat().st_mode & 0o777 == 0o750
    odd = b"caf\xe9\n'.txt".decode("utf-8", "surrogateescape")
    (folder / odd).write_bytes(b"odd\n")
    assert "caf\\xe9" in (await tools["glob"](pattern="*.txt")).text
    assert "odd" in (await tools["read_file"](path="caf\\xe9\\x0a'.txt")).text


async def test_it_works_from_several_event_loops(server: Server) -> None:
    sandbox = server.sandbox()

    def in_a_loop_of_its_own(number: int) -> bytes:
        async def once() -> bytes:
            return (await sandbox.run(f"echo {number}")).stdout

        return asyncio.run(once())

    results = await asyncio.gather(*[asyncio.to_thread(in_a_loop_of_its_own, n) for n in range(4)])
    assert results == [b"%d\n" % n for n in range(4)]
    await sandbox.aclose()


@pytest.mark.parametrize("after_bytes", [0, 40, 900, 1_500, 2_500, 3_500, 5_000, 20_000])
async def test_a_connection_cut_at_any_point_is_an_error_of_every_operation(server: Server, after_bytes: int) -> None:
    target = server.new_folder(f"cut{after_bytes}")
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(CuttingProxy(server.port, cut_after_bytes=after_bytes))
        sandbox = await stack.enter_async_context(server.sandbox(target, **_through(server, proxy)))
        tools = default_tools(target, sandbox=sandbox)
        for name, arguments in {
            "shell": {"command": "head -c 50000 /dev/zero; sleep 0.2; echo end"},
            "write_file": {"path": "f.txt", "content": "y" * 50_000},
            "grep": {"pattern": "x"},
        }.items():
            async with asyncio.timeout(60):
                result = await tools[name].call(arguments)
            if result.is_error:
                assert result.error is not None
                assert result.error.code in ("unavailable", "io_error", "network_error"), result.text
            elif name == "shell":
                assert str(result.to_dict()["data"]["stdout"]).endswith("end\n")
            elif name == "write_file":
                assert (Path(target) / "f.txt").read_text() == "y" * 50_000


async def test_soak_commands_end_and_return_though_connections_are_cut(server: Server) -> None:
    """200 commands, 20 at once (a tenth by default); whatever is cut, all return, and nothing is left there."""
    name, count = f"9{secrets.randbelow(10**6):06d}", soak(200)
    chance = random.Random(7)
    async with CuttingProxy(server.port) as proxy, server.sandbox(**_through(server, proxy)) as sandbox:
        gate = asyncio.Semaphore(20)

        async def one(number: int) -> str:
            async with gate:
                try:
                    command = f"sleep 0.{chance.randrange(1, 5)}; setsid sleep {name}.{number} & echo {number}"
                    result = await sandbox.run(command, timeout_seconds=60)
                except ToolError as e:
                    return e.code
                assert result.stdout == b"%d\n" % number
                return "ok"

        async def cut() -> None:
            while True:
                await asyncio.sleep(chance.uniform(0.3, 1.0))
                proxy.cut()

        cutting = asyncio.create_task(cut())
        outcomes = await asyncio.gather(*[one(number) for number in range(count)])
        cutting.cancel()
    assert len(outcomes) == count
    assert set(outcomes) <= {"ok", "unavailable"}, set(outcomes)
    assert await gone(f"sleep {name}.")


def _through(server: Server, proxy: CuttingProxy) -> dict[str, Any]:
    return {"port": proxy.port, "known_hosts": server.known_hosts_for(proxy.port)}
