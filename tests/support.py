"""What several test rooms share."""

from __future__ import annotations

import os

import pytest


def require(condition: object, reason: str) -> None:
    """Skip with a reason where this machine lacks a part; under CI=true a missing part fails."""
    if condition:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing under CI: {reason}")
    pytest.skip(reason)


def soak(whole: int) -> int:
    """How many rounds a soak runs: all of them with SOAK=1, else a tenth."""
    return whole if os.environ.get("SOAK") == "1" else max(1, whole // 10)
