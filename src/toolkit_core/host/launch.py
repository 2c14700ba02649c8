"""Who keeps commands on this machine: the supervisor where there is one, else their process group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit_core.host import process_group, supervisor

if TYPE_CHECKING:
    from toolkit_core.host.supervised import Spec, Supervised


async def start(spec: Spec) -> Supervised:
    """Start a command.

    Raises:
        StartError: The system refused; nothing ran.
        SupervisorLostError: Nobody could keep it.
    """
    if supervisor.supported():
        return await supervisor.start(spec)
    return process_group.start(spec)
