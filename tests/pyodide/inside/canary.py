"""Must fail: where it passes, async tests are not run at all. Named so that `make test` does not collect it."""

from __future__ import annotations


async def test_the_canary_fails() -> None:
    raise AssertionError("the canary sings")
