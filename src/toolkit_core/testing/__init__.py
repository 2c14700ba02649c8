"""Fakes and conformance suites, shipped for everybody's own adapters."""
