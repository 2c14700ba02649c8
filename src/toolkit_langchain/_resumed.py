"""Whether the graph's task that runs now was resumed with somebody's answer."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Final

from toolkit_core.limits import OPEN_ASKS_KEPT
from toolkit_langchain.ask import SCRATCHPAD

_NAMESPACE: Final = "checkpoint_ns"


class Resumed:
    """Tells a turn that an answer resumes from a turn that begins after it.

    In an agent that runs inside another graph's tool LangGraph goes on showing the answer of the outer run once it
    was taken; there the first turn that sees an answer is the one that it is for.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: OrderedDict[str, tuple[object, str]] = OrderedDict()

    def by_this_answer(self, thread: str, turn: str) -> bool:
        """Whether the task that runs now is replayed with an answer to a question of this turn."""
        from langgraph.config import get_config

        try:
            configurable: dict[str, Any] = get_config().get("configurable", {})
        except RuntimeError:
            return False
        attempt = configurable.get(SCRATCHPAD)
        if attempt is None:
            return False
        answer: object = attempt.get_null_resume(False)
        return bool(attempt.resume) or (answer is not None and self._is_for(thread, turn, answer, configurable))

    def _is_for(self, thread: str, turn: str, answer: object, configurable: dict[str, Any]) -> bool:
        if "|" not in str(configurable.get(_NAMESPACE, "")):
            return True
        with self._lock:
            taken = self._taken.get(thread)
            if taken is None or taken[0] is not answer:
                self._taken[thread] = (answer, turn)
                while len(self._taken) > OPEN_ASKS_KEPT:
                    self._taken.popitem(last=False)
                return True
            return taken[1] == turn
