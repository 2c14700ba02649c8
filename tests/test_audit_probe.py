"""The neutral tools under an audit hook (PEP 578) that refuses whatever touches this machine, in a fresh interpreter.

Importing proves nothing: asyncio alone imports socket and subprocess. So everything neutral is imported, the event
loop made, and then every tool is run over ports in memory with the hook armed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

PROBE = r'''
import asyncio, importlib, json, pkgutil, sys

sys.path.insert(0, ROOT)
import toolkit_core

LEAVES = ("toolkit_core.host", "toolkit_core.cli", "toolkit_core.capabilities", "toolkit_core.defaults")


def neutral(package):
    for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if not found.name.startswith(LEAVES) and found.name != "toolkit_core.testing.fixtures":
            yield found.name
            module = importlib.import_module(found.name)
            if found.ispkg:
                yield from neutral(module)


modules = list(neutral(toolkit_core))
import docstring_parser, jsonschema  # what tools load when they are first used
import tests.neutral.calls as calls
from tests.neutral.test_every_tool import test_a_schema_tool_validates_or_says_what_is_missing as schema_tool_works
loaded = sorted(name for name in sys.modules if name.startswith(LEAVES))
touched = []
armed = False
REFUSED = "os subprocess socket ctypes shutil tempfile sqlite3 fcntl pty glob pathlib"
PREFIXES = tuple(name + "." for name in REFUSED.split())


def hook(event, arguments):
    if not armed or not (event == "open" or event.startswith(PREFIXES)):
        return
    frame = sys._getframe(1)
    callers = set()
    while frame is not None:
        callers.add(frame.f_globals.get("__name__"))
        frame = frame.f_back
    if event == "open" and "linecache" in callers:  # a traceback that is logged shows its source
        return
    touched.append([event, repr(arguments)[:200]])
    raise PermissionError(f"the probe refuses {event}")


async def run():
    global armed
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(int)  # the loop's first worker thread
    await schema_tool_works()
    sys.addaudithook(hook)
    armed = True
    results = [[each.tool, each.result.is_error, each.result.text[:300]] async for each in calls.every_call()]
    await schema_tool_works()
    seen, touched[:] = list(touched), []

    @toolkit_core.function_tool
    async def sneaky() -> str:
        """Opens a file."""
        with open(ROOT + "/README.md") as file:
            return file.read()

    control = await sneaky()
    armed = False
    control = [control.is_error, touched]
    return {"modules": modules, "loaded": loaded, "results": results, "touched": seen, "control": control}


print(json.dumps(asyncio.run(run())))
'''


def probed() -> dict[str, Any]:
    """What the probe saw."""
    program = f"ROOT = {str(ROOT)!r}\n{PROBE}"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_no_neutral_tool_touches_this_machine() -> None:
    seen = probed()

    assert len(seen["modules"]) > 50
    assert seen["loaded"] == [], "the neutral core imports the host or a leaf"
    assert len({tool for tool, *_ in seen["results"]}) > 20
    assert [result for result in seen["results"] if result[1]] == []
    assert seen["touched"] == []
    is_error, touched = seen["control"]
    assert is_error, "CONTROL: the hook refuses a tool that opens a file"
    assert touched[0][0] == "open"
