"""Composition leaf: the core's default tools, converted."""

from __future__ import annotations
