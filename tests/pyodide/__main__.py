"""`make pyodide`: tests/neutral in Pyodide under Node, over a wheel without the host; then a page in a browser.

What is missing is said, and fails under CI=true. Exit status 0: all passed, and the canary failed as it must.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.pyodide import browser, building

_OUTCOME = re.compile(
    r"^outcome: (\S+); tests: (\d+) (\d+) (\d+) (\d+); canary: (\d+) (\d+) (\d+) (\d+)$", re.MULTILINE
)
_LEAST_TESTS = 60
_SECONDS = 400


def main() -> int:
    """Both parts; the first that fails ends it."""
    with tempfile.TemporaryDirectory() as name:
        parts: list[Callable[[], str]] = []
        try:
            wheel = building.stripped_wheel(Path(name))
            folder, wheels = building.pyodide(), building.wheels()
            parts = [lambda: under_node(folder, [*wheels, wheel]), lambda: browser.in_a_page(folder, [*wheels, wheel])]
        except building.MissingError as e:
            return _missing(e)
        for part in parts:
            try:
                sys.stdout.write(f"{part()}\n")
            except building.MissingError as e:
                if (status := _missing(e)) != 0:
                    return status
            except AssertionError as e:
                sys.stdout.write(f"failed: {e}\n")
                return 1
    return 0


def _missing(e: building.MissingError) -> int:
    in_ci = os.environ.get("CI") == "true"
    sys.stdout.write(f"{'failed' if in_ci else 'skipped'}: {e}\n")
    return 1 if in_ci else 0


def under_node(folder: Path, wheels: list[Path]) -> str:
    """Run the tests; what came of them. AssertionError where they did not pass, or the canary did."""
    script = Path(__file__).with_name("run.mjs")
    command = [str(building.node()), "--experimental-wasm-jspi", str(script), str(folder), str(building.ROOT)]
    command += map(str, wheels)
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    found = _OUTCOME.search(done.stdout)
    assert found, f"no outcome\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    python, (status, passed, failed, _), canary = found[1], map(int, found.groups()[1:5]), found.groups()[5:]
    assert (status, failed) == (0, 0), done.stdout[-6000:]
    assert passed >= _LEAST_TESTS, f"only {passed} tests ran"
    assert canary == ("1", "0", "1", "0"), f"the canary passed, so tests are not run: {canary}"
    return f"Pyodide {building.PYODIDE} (Python {python}): {passed} passed, and the canary failed as it must"


if __name__ == "__main__":
    sys.exit(main())
