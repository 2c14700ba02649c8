"""What was approved is what is opened: the last check, on the file that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.ports.files import Resolved


def check_approved(context: ToolContext, path: Resolved) -> None:
    """Refuse a file that another path leads to than the one that was approved.

    Raises:
        ToolError: `denied`: a part of the path was swapped after the approval.
    """
    if context.approved_subject is not None and context.approved_subject != path.subject:
        raise ToolError(
            f"{context.approved_subject!r} was approved, and the path leads to {path.subject!r} now.",
            code="denied",
            hint="Something changed since the approval; make the call again so that it is judged anew.",
        )
