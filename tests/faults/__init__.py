"""System calls that fail once, one after the other; see `python -m tests.faults --help`."""
