"""Confining this machine's commands with bubblewrap."""

from __future__ import annotations

from toolkit_core.host.bubblewrap.confine import SandboxLimits
from toolkit_core.host.bubblewrap.probing import Probe, probe
from toolkit_core.host.bubblewrap.sandbox import BubblewrapSandbox
from toolkit_core.trust_inputs import TRUST_INPUTS

__all__ = ["TRUST_INPUTS", "BubblewrapSandbox", "Probe", "SandboxLimits", "probe"]
