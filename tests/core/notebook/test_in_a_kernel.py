"""In a real kernel, spoken to as a notebook's page speaks to it."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support import require

Message = dict[str, Any]


class Page:
    """A notebook's page: runs cells, keeps what they show, and answers."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.seen: list[Message] = []

    def run(self, code: str, react: Callable[[Message], None] | None = None, *, stdin: str | None = None) -> str:
        """Run a cell to its end; what it wrote."""
        sent = self._client.execute(code, allow_stdin=stdin is not None)
        self.seen = []
        until = time.monotonic() + 90
        while time.monotonic() < until:
            if stdin is not None and self._client.stdin_channel.msg_ready():
                self._client.get_stdin_msg(timeout=1)
                self._client.input(stdin)
            try:
                message = self._client.get_iopub_msg(timeout=0.2)
            except queue.Empty:
                continue
            self.seen.append(message)
            if react is not None:
                react(message)
            is_ours = message["parent_header"].get("msg_id") == sent
            if is_ours and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
        else:
            raise AssertionError(f"the cell did not end; it showed {self.of('stream', 'error')}")
        errors = self.of("error")
        assert not errors, errors
        return "".join(message["content"]["text"] for message in self.of("stream"))

    def of(self, *kinds: str) -> list[Message]:
        return [message for message in self.seen if message["msg_type"] in kinds]

    def click(self, comm_id: str) -> None:
        """What the page sends for a click on a button."""
        content = {"comm_id": comm_id, "data": {"method": "custom", "content": {"event": "click"}}}
        self._send("comm_msg", content)

    def tick(self, comm_id: str) -> None:
        """What the page sends for a box that is ticked."""
        data: Message = {"method": "update", "state": {"value": True}, "buffer_paths": []}
        self._send("comm_msg", {"comm_id": comm_id, "data": data})

    def _send(self, kind: str, content: Message) -> None:
        self._client.shell_channel.send(self._client.session.msg(kind, content))

    def widget(self, message: Message, description: str) -> str | None:
        """The id of a widget that this message made, where its text is this one."""
        if message["msg_type"] != "comm_open":
            return None
        state = message["content"]["data"].get("state", {})
        return message["content"]["comm_id"] if state.get("description") == description else None


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    require(find_spec("ipykernel") and find_spec("ipywidgets"), "ipykernel and ipywidgets (the extra dev)")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(startup_timeout=90, kernel_name="python3")
    try:
        yield Page(client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


SETUP = """
from toolkit_core import Option, Question, function_tool, ToolContext
from toolkit_core.notebook import LiveProgress, NotebookAsk, notebook_context
"""


def test_a_click_reaches_a_cell_that_still_runs(page: Page) -> None:
    def react(message: Message) -> None:
        if (button := page.widget(message, "blue: as the sky")) is not None:
            page.click(button)

    said = page.run(
        SETUP
        + "print(await NotebookAsk()(Question('1', 'Which?', '', (Option('red'), Option('blue', 'as the sky')))))",
        react,
    )

    assert said == "Answer(values=('blue',), text='')\n"
    assert page.of("comm_close")


def test_boxes_are_ticked_and_answered_together(page: Page) -> None:
    waiting: list[str] = []

    def react(message: Message) -> None:
        for description in ("a", "b"):
            if (box := page.widget(message, description)) is not None:
                waiting.append(box)
        if (button := page.widget(message, "Answer")) is not None:
            for box in waiting:
                page.tick(box)
            page.click(button)

    options = "(Option('a'), Option('b'), Option('c'))"
    said = page.run(
        f"{SETUP}print(await NotebookAsk()(Question('1', 'Which?', '', {options}, multi_select=True)))", react
    )

    assert said == "Answer(values=('a', 'b'), text='')\n"


def test_dismissing_is_no_answer(page: Page) -> None:
    def react(message: Message) -> None:
        if (button := page.widget(message, "Dismiss")) is not None:
            page.click(button)

    assert page.run(f"{SETUP}print(await notebook_context().ask(Question('1', 'Name?')))", react) == "None\n"


def test_a_cancelled_question_takes_its_form_away(page: Page) -> None:
    code = """
import asyncio
try:
    async with asyncio.timeout(0.5):
        await NotebookAsk()(Question('1', 'Name?'))
except TimeoutError:
    print('gone')
"""
    assert page.run(SETUP + code) == "gone\n"
    assert page.of("comm_close")


def test_without_widgets_the_page_s_input_field_asks(page: Page) -> None:
    code = "print(await NotebookAsk(widgets=False)(Question('1', 'Which?', '', (Option('red'), Option('blue')))))"
    said = page.run(SETUP + code, stdin="2")

    assert said.endswith("Answer(values=('blue',), text='')\n")


def test_progress_is_one_output_that_is_replaced(page: Page) -> None:
    code = """
import asyncio

@function_tool
async def count(context: ToolContext) -> int:
    \"\"\"Counts.\"\"\"
    for n in range(4):
        context.report("lines", f"line {n}\\n", done=n + 1, total=4)
        await asyncio.sleep(0.3)
    return 4

context = notebook_context()
await count.call({}, context)
"""
    page.run(SETUP + code)
    first, *updates = page.of("display_data", "update_display_data")

    assert first["msg_type"] == "display_data"
    assert len(updates) >= 2
    assert {update["msg_type"] for update in updates} == {"update_display_data"}
    assert len({m["content"]["transient"]["display_id"] for m in (first, *updates)}) == 1
    assert "line 0\nline 1" in updates[-1]["content"]["data"]["text/html"]
    assert "width:100.0%" in updates[-1]["content"]["data"]["text/html"]

    page.run("await count.call({}, context)")
    again = page.of("display_data")
    assert len(again) == 1
    assert again[0]["content"]["transient"]["display_id"] != first["content"]["transient"]["display_id"]
