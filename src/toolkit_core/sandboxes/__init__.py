"""Sandbox clients that need no host, and ports over any client."""
