"""Risk, and which calls may run beside each other."""

from __future__ import annotations

from toolkit_core import Claims, Effects, conflicts


def test_risk_is_the_worst_that_may_happen() -> None:
    assert Effects(reads=True, network=True).risk == "inspect"
    assert Effects(reads=True, writes=True).risk == "modify"
    assert Effects(destructive=True).risk == "modify"
    assert Effects(writes=True, executes=True).risk == "execute"


def test_claims_conflict_only_where_one_may_disturb_the_other() -> None:
    src, file = Claims(paths=("/w/src",)), Claims(paths=("/w/src/a.py",))
    everything, reader, nothing = Claims(exclusive=True), Claims(paths=("/w/src",), read_only=True), Claims()

    assert conflicts(src, file)
    assert conflicts(file, src)
    assert not conflicts(src, Claims(paths=("/w/srcs",)))
    assert conflicts(Claims(paths=("/",)), file)
    assert conflicts(everything, everything)
    assert conflicts(everything, src)
    for other in (src, file, everything, reader, nothing):
        assert not conflicts(reader, other)
        assert not conflicts(other, nothing)
