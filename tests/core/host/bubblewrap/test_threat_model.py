"""THREAT_MODEL.md names tests and attempts that exist."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

from tests.core.host.bubblewrap.escapes import ESCAPES

HERE = Path(__file__).parent
TEXT = (HERE.parents[3] / "THREAT_MODEL.md").read_text(encoding="utf-8")
OWN = TEXT.partition("## The sandbox")[2].partition("\n## Processes without a sandbox")[0]


def test_every_test_that_it_names_exists() -> None:
    written = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", OWN))
    assert len(named) > 20
    assert {name for name in named if f"def {name}(" not in written} == set()
    assert all((HERE / name).exists() for name in re.findall(r"`(test_\w+\.py)`", OWN))


def test_every_attempt_that_it_names_exists_and_every_gap_is_named() -> None:
    names = [escape.name for escape in ESCAPES]
    named = re.findall(r"`((?:net|unix|fs|ns|kr|pr|tty|ti|hid|pt|vsock|alg|netlink|\*)-?[\w*-]*)`", OWN)
    assert [one for one in named if not fnmatch.filter(names, one)] == []
    gaps = [escape.name for escape in ESCAPES if escape.expected == "gap"]
    assert [gap for gap in gaps if f"`{gap}`" not in OWN] == []
