"""Framework-free tools for agents."""
