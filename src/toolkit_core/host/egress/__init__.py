"""Who may be reached: address rules, URLs, the policy, pinned connections."""

from __future__ import annotations

from toolkit_core.host.egress.policy import Connection, Dial, Egress
from toolkit_core.host.egress.resolver import Resolver, SystemResolver
from toolkit_core.host.egress.urls import Target

__all__ = ["Connection", "Dial", "Egress", "Resolver", "SystemResolver", "Target"]
