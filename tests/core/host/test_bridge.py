"""The blocking bridge: sync callers anywhere, nothing ends or hangs it."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from toolkit_core.host.bridge import run_blocking

place = contextvars.ContextVar("place", default="nowhere")


async def where() -> str:
    await asyncio.sleep(0)
    return place.get()


async def raises(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def test_works_in_a_script_and_sees_the_callers_context() -> None:
    token = place.set("here")
    assert run_blocking(where()) == "here"
    place.reset(token)
    assert run_blocking(where()) == "nowhere"


async def test_works_where_a_loop_runs() -> None:
    assert run_blocking(where()) == "nowhere"


def test_works_from_many_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(lambda: run_blocking(where())) for _ in range(64)]
        assert [call.result() for call in calls] == ["nowhere"] * 64


@pytest.mark.parametrize("error", [SystemExit(3), ValueError("x"), asyncio.CancelledError(), KeyboardInterrupt()])
def test_what_the_work_raises_reaches_the_caller_and_the_bridge_lives_on(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run_blocking(raises(error))
    assert run_blocking(where()) == "nowhere"


def test_a_child_task_that_exits_does_not_end_the_bridge(caplog: pytest.LogCaptureFixture) -> None:
    async def spawn() -> str:
        child = asyncio.ensure_future(raises(SystemExit(4)))
        await asyncio.wait({child})
        assert isinstance(child.exception(), SystemExit)
        return "survived"

    assert run_blocking(spawn()) == "survived"
    assert run_blocking(where()) == "nowhere"


def test_refuses_its_own_thread_instead_of_waiting_for_ever() -> None:
    async def nested() -> Any:
        return run_blocking(where())

    with pytest.raises(RuntimeError, match="await the async form"):
        run_blocking(nested())


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_works_in_a_forked_child() -> None:
    assert run_blocking(where()) == "nowhere"
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if run_blocking(where()) == "nowhere" else 2
        finally:
            os._exit(code)
    waited = threading.Timer(20, os.kill, (pid, 9))
    waited.start()
    _, status = os.waitpid(pid, 0)
    waited.cancel()
    assert os.waitstatus_to_exitcode(status) == 0
