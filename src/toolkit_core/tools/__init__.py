"""The built-in tools: one a private file, each a factory over its port."""
