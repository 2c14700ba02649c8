"""Workspace manifests."""
