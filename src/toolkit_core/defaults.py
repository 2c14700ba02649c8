"""Composition leaf: the tools that most agents want, over this machine."""

from __future__ import annotations
