from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import toolkit_core
from toolkit_core import cli
from toolkit_core.cli.demo_job import Brain, DemoJob, Step, ToolCall, Transcript
from toolkit_core.cli.demo_reading import called_names, definitions, failures_in, function_lines, numbered_lines
from toolkit_core.cli.demo_repairs import repairs
from toolkit_core.limits import DEMO_MAX_TURNS

SAMPLE = Path(cli.__file__).with_name("sample")
FIX = ("parcels/pricing.py", "> FREE_FROM_CENTS", ">= FREE_FROM_CENTS")


def project(workspace: Path, *changes: tuple[str, str, str]) -> DemoJob:
    """A copy of the sample with changes of (file, old, new)."""
    shutil.copytree(SAMPLE, workspace, dirs_exist_ok=True)
    for name, old, new in changes:
        file = workspace / name
        assert file.read_text().count(old) >= 1, (name, old)
        file.write_text(file.read_text().replace(old, new))
    return DemoJob(str(workspace), "fix it", None, f"{shlex.quote(sys.executable)} -B -m unittest")


def suite_passes(workspace: Path) -> bool:
    argv = [sys.executable, "-B", "-m", "unittest"]
    return subprocess.run(argv, cwd=workspace, capture_output=True, timeout=60, check=False).returncode == 0


async def work(job: DemoJob) -> tuple[list[Step], str]:
    """Let the brain work with the real tools, as an agent of any framework does."""
    brain, steps = Brain(job), list[Step]()
    async with toolkit_core.default_tools(job.workspace) as tools:
        for _ in range(DEMO_MAX_TURNS):
            turn = brain.next_turn(steps)
            if isinstance(turn, str):
                return steps, turn
            result = await tools[turn.name].call(dict(turn.arguments))
            steps.append(Step(turn.name, turn.arguments, result.text, result.is_error))
    raise AssertionError("the brain does not end")


async def test_the_bug_of_the_sample_is_found_and_fixed(workspace: Path) -> None:
    job = project(workspace)
    assert not suite_passes(workspace)  # CONTROL: there is a bug

    steps, answer = await work(job)

    assert suite_passes(workspace)
    assert answer.startswith("Fixed: parcels/pricing.py line 15.")
    names = [step.name for step in steps]
    assert {"shell", "glob", "grep", "read_file", "edit_file"} == set(names)
    edits = [step for step in steps if step.name == "edit_file"]
    assert edits[0].is_error
    assert not edits[-1].is_error  # the first edit failed, and the brain recovered


@pytest.mark.parametrize(
    "changes",
    [
        [FIX, ("parcels/slip.py", "- 1) //", "+ 1) //")],
        [FIX, ("parcels/slip.py", "pages", "sheets"), ("tests/test_slip.py", "pages", "sheets"),
         ("parcels/slip.py", "(lines +", "(lines -")],
        [FIX, ("parcels/weight.py", "grams * quantity", "grams + quantity")],
        [FIX, ("parcels/weight.py", "not in GRAMS", "in GRAMS"), ("parcels/weight.py", "def parse", "\n\ndef parse")],
        [FIX, ("parcels/calendar.py", "left > 0", "left > 1")],
        [FIX, ("parcels/pricing.py", "cents // 100}", "cents // 10}")],
    ],
    ids=["sign", "renamed", "operator", "condition", "off-by-one", "in-an-f-string"],
)  # fmt: skip
async def test_a_bug_elsewhere_is_found_as_well(workspace: Path, changes: list[tuple[str, str, str]]) -> None:
    job = project(workspace, *changes)
    assert not suite_passes(workspace)

    _, answer = await work(job)

    assert answer.startswith("Fixed: "), answer
    assert suite_passes(workspace)


async def test_a_bug_that_cannot_be_fixed_leaves_every_file_as_it_was(workspace: Path) -> None:
    job = project(workspace, FIX, ("parcels/pricing.py", "return subtotal_cents * percent // 100", "return 7"))
    before = {path: path.read_bytes() for path in workspace.rglob("*.py")}

    steps, answer = await work(job)

    assert "none made test_a_voucher_is_rounded_down pass" in answer
    assert {path: path.read_bytes() for path in workspace.rglob("*.py")} == before
    assert len(steps) < DEMO_MAX_TURNS


async def test_passing_tests_leave_nothing_to_do(workspace: Path) -> None:
    steps, answer = await work(project(workspace, FIX))

    assert (len(steps), answer) == (1, "All tests pass; there is nothing to fix.")


def test_output_without_a_failing_test_is_said_not_guessed() -> None:
    brain = Brain(DemoJob("/w", "", None, "t"))

    answer = brain.next_turn([Step("shell", {}, "exit code: 1\nModuleNotFoundError: no such thing", False)])

    assert isinstance(answer, str)
    assert "ModuleNotFoundError" in answer


def test_the_same_steps_give_the_same_turn() -> None:
    brain = Brain(DemoJob("/w", "", None, "run the tests"))

    assert brain.next_turn([]) == brain.next_turn([])
    assert isinstance(brain.next_turn([]), ToolCall)


OUTPUT = """\
exit code: 1
--- stderr ---
E.F
======================================================================
ERROR: test_b (tests.test_x.Y.test_b)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/w/tests/test_x.py", line 12, in test_b
    self.assertEqual(area(2, depth(3)), 6)
                     ^^^^^^^^^^^^^^^^^
  File "/w/shapes.py", line 3, in area
    return a / 0
           ~~^~~
ZeroDivisionError: division by zero

======================================================================
FAIL: test_c (tests.test_x.Y.test_c)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "C:\\w\\tests\\test_x.py", line 15, in test_c
    self.assertEqual(area(1, 1), 1)
AssertionError: 0 != 1

----------------------------------------------------------------------
Ran 3 tests in 0.001s
"""


def test_failures_are_read_with_their_line_and_the_functions_that_raised() -> None:
    first, second = failures_in(OUTPUT)

    assert (first.test, first.path, first.line, first.frames) == ("test_b", "/w/tests/test_x.py", 12, ("area",))
    assert (second.test, second.code) == ("test_c", "self.assertEqual(area(1, 1), 1)")


def test_lines_functions_calls_and_definitions_are_read() -> None:
    lines = numbered_lines(
        "lines 1-5 of 5\n     1\tdef f(a):\n     2\t    b = g(a)\n     3\t\n     4\t    return max(b, 1)\n     5\tx = 1"
    )

    assert lines[5] == "x = 1"
    assert list(function_lines(lines, 4)) == [1, 2, 3, 4]
    assert function_lines(lines, 99) == {}
    assert called_names(function_lines(lines, 4).values()) == ["g", "max"]
    rows = "tests/test_a.py:9:def g(): pass\na:b/c.py:7:    async def g(x):\nsrc/a.py:1:def f(a):"
    assert definitions(rows, ["g", "f"]) == [("a:b/c.py", 7), ("src/a.py", 1)]


def test_repairs_change_one_place_and_leave_docstrings_alone() -> None:
    body = {1: "def f(a):", 2: '    """a < b"""', 3: "    return a < 10", 4: '    x = f"{a + 1}"'}

    found = repairs(body)

    assert found[0].text == "    return a <= 10"
    assert {r.line for r in found} == {3, 4}
    assert '    x = f"{a - 1}"' in [r.text for r in found]


def test_the_transcript_marks_errors_and_cuts_long_results() -> None:
    said: list[str] = []
    transcript = Transcript(said.append)

    transcript.turn(ToolCall("grep", {"pattern": "x"}, "I look."))
    transcript.step(Step("grep", {}, "Error (io_error): no", True))
    transcript.step(Step("grep", {}, "\n".join(map(str, range(100))), False))
    transcript.turn("done")

    text = "\n".join(said)
    assert '1  grep(pattern="x")' in text
    assert "! Error (io_error): no" in text
    assert "86 more lines" in text
    assert said[-1].endswith("done")
