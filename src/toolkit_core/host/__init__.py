"""Everything that touches this machine."""
