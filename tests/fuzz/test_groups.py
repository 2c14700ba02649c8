"""A short run of every group; `python -m tests.fuzz` runs them for long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.fuzz.groups import GROUPS
from tests.support import soak

EXAMPLES = 1_000


@pytest.mark.parametrize("name", GROUPS)
def test_whatever_comes_in_the_groups_property_holds(name: str) -> None:
    group = GROUPS[name]
    given(group.inputs)(settings(max_examples=soak(EXAMPLES))(group.check))()
