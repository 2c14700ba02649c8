"""What tools need of their surroundings: one Protocol and its value types a file.

Every method is awaited in the call's own task, never in a TaskGroup child. A failure is a `ToolError`
with a code of the closed set; anything else that a port raises is a bug of the adapter.
"""
