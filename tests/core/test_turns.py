from __future__ import annotations

import asyncio
import threading

import pytest

from toolkit_core.turns import Turns


class Counter:
    """A number that loses increments unless they take turns."""

    def __init__(self) -> None:
        self.value = 0

    async def add(self) -> None:
        before = self.value
        await asyncio.sleep(0)
        self.value = before + 1


async def test_without_turns_increments_are_lost() -> None:
    counter = Counter()
    await asyncio.gather(*(counter.add() for _ in range(50)))
    assert counter.value < 50


async def test_turns_keep_every_increment() -> None:
    counter, turns = Counter(), Turns()

    async def add() -> None:
        async with turns.turn("a"):
            await counter.add()

    await asyncio.gather(*(add() for _ in range(50)))
    assert counter.value == 50


def test_turns_hold_across_threads_and_loops() -> None:
    counter, turns = Counter(), Turns()

    async def add() -> None:
        for _ in range(100):
            async with turns.turn("a"):
                await counter.add()

    threads = [threading.Thread(target=lambda: asyncio.run(add())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert counter.value == 800


async def test_they_come_in_order() -> None:
    turns, order = Turns(), list[int]()

    async def come(number: int) -> None:
        async with turns.turn("a"):
            await asyncio.sleep(0)
            order.append(number)

    await asyncio.gather(*(come(number) for number in range(20)))
    assert order == list(range(20))


async def test_a_waiter_that_gives_up_lets_the_others_pass() -> None:
    turns, entered = Turns(), list[str]()
    release = asyncio.Event()

    async def hold() -> None:
        async with turns.turn("a"):
            await release.wait()

    async def enter(name: str) -> None:
        async with turns.turn("a"):
            entered.append(name)

    holder = asyncio.create_task(hold())
    await asyncio.sleep(0)
    impatient, patient = asyncio.create_task(enter("impatient")), asyncio.create_task(enter("patient"))
    await asyncio.sleep(0)
    impatient.cancel()
    release.set()
    await asyncio.gather(holder, patient)
    assert entered == ["patient"]
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_a_turn_handed_over_to_one_that_is_cancelled_goes_on_to_the_next() -> None:
    turns, entered = Turns(), list[str]()

    async def enter(name: str) -> None:
        async with turns.turn("a"):
            entered.append(name)
            await asyncio.sleep(0)

    for _ in range(200):
        entered.clear()
        tasks = [asyncio.create_task(enter(str(number))) for number in range(4)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert entered[-1] == "3"


def test_a_loop_that_was_closed_does_not_keep_its_turn_waiting() -> None:
    turns = Turns()
    loop = asyncio.new_event_loop()

    async def wait_in_vain() -> None:
        async with turns.turn("a"):
            pass

    async def main() -> None:
        async with turns.turn("a"):
            pending = loop.create_task(wait_in_vain())
            await asyncio.to_thread(lambda: loop.run_until_complete(asyncio.sleep(0)))
            loop.close()
        async with asyncio.timeout(10), turns.turn("a"):
            pass
        pending.cancel() if not loop.is_closed() else None

    asyncio.run(main())


async def test_after_forgetting_nobody_waits() -> None:
    turns = Turns()
    async with turns.turn("a"):
        turns.forget()
        async with asyncio.timeout(10), turns.turn("a"):
            pass
