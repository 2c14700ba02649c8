"""Calls in the order in which they began, each with the calls that were made within it below it."""

from __future__ import annotations

from collections.abc import Sequence


def in_order(calls: Sequence[tuple[str, str, float]]) -> list[tuple[int, int]]:
    """The indices of the calls as a reader wants them, and how deep each is nested.

    A parent that is not there makes a call stand alone; one that names itself, or a ring of parents, does too.

    Args:
        calls: Entry id, parent's entry id ("" for none) and start of each.
    """
    owner = {entry_id: index for index, (entry_id, _, _) in enumerate(calls)}
    children: dict[int, list[int]] = {}
    roots: list[int] = []
    by_start = sorted(range(len(calls)), key=lambda index: calls[index][2])
    for index in by_start:
        entry_id, parent_id, _ = calls[index]
        parent = owner.get(parent_id) if parent_id and parent_id != entry_id else None
        children.setdefault(parent, []).append(index) if parent is not None else roots.append(index)
    ordered: list[tuple[int, int]] = []
    seen = [False] * len(calls)
    for root in (*roots, *by_start):  # what is left after the roots stands in a ring
        waiting = [(root, 0)]
        while waiting:
            index, depth = waiting.pop()
            if seen[index]:
                continue
            seen[index] = True
            ordered.append((index, depth))
            waiting += [(child, depth + 1) for child in reversed(children.get(index, ()))]
    return ordered
