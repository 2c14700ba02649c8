"""What the tools cost against the bare machine and against other libraries' tools: `python -m benchmarks`."""
