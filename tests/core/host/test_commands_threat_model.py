"""The part on processes in THREAT_MODEL.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
TEXT = (HERE.parents[2] / "THREAT_MODEL.md").read_text(encoding="utf-8")
OWN = TEXT.partition("\n## Processes without a sandbox")[2].partition("\n## ")[0]


def test_every_test_that_it_names_exists() -> None:
    written = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", OWN))
    assert len(named) > 15
    assert {name for name in named if f"def {name}(" not in written} == set()
    assert all((HERE / name).exists() for name in re.findall(r"`(test_\w+\.py)`", OWN))
