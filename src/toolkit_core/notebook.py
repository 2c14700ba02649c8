"""Notebooks: progress that updates in place, and questions answered where the cell runs.

    context = notebook_context()
    await tools["shell"].call({"command": "make test"}, context)

IPython and ipywidgets are imported when they are first needed, and may be missing: progress then goes to standard
output, questions to `input()`.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from toolkit_core.context import Progress, ToolContext
from toolkit_core.display import inert, progress_bundle
from toolkit_core.limits import ASK_POLL_SECONDS, DISPLAY_PROGRESS_CHARS
from toolkit_core.ports.ask import Answer, Option, Question

__all__ = ["LiveProgress", "NotebookAsk", "notebook_context"]

_HANDLES_CLICKS: Final = (7, 4)  # the first ipykernel known to hand a click to a cell that still runs


def notebook_context(*, session_id: str | None = None) -> ToolContext:
    """A context for calls from a notebook: progress is shown as it comes, questions are asked below the cell.

    Args:
        session_id: Whose calls these are; None: the tool set's own session.
    """
    return ToolContext(session_id=session_id, progress=LiveProgress(), ask=NotebookAsk())


class LiveProgress:
    """Shows progress in place: one output a cell and a kind of progress, replaced at each report.

    Where there is no notebook, what comes is written to standard output.

    Example:
        >>> context = ToolContext(progress=LiveProgress())
    """

    def __init__(self) -> None:
        self._cell: object = None
        self._shown: dict[str, _Shown] = {}

    def __call__(self, progress: Progress) -> None:
        """Show one report."""
        shell = _shell()
        if shell is None:
            sys.stdout.write(inert(progress.text))
            return
        if shell.execution_count != self._cell:
            self._cell, self._shown = shell.execution_count, {}
        if progress.kind not in self._shown:
            self._shown[progress.kind] = _Shown(progress.kind)
        self._shown[progress.kind].report(progress)


class _Shown:
    """One output that is replaced."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._text = ""
        self._handle: Any = None

    def report(self, progress: Progress) -> None:
        self._text = (self._text + progress.text)[-DISPLAY_PROGRESS_CHARS:]
        ended = progress.total is not None and progress.done is not None and progress.done >= progress.total
        bundle = progress_bundle(self._kind, self._text, done=progress.done, total=progress.total, ended=ended)
        if self._handle is None:
            self._handle = import_module("IPython.display").display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


class NotebookAsk:
    """An `Ask` port for a person at a notebook: buttons and a text field below the cell, else `input()`.

    Buttons need ipywidgets, and a kernel that hands over a click while the cell still runs: ipykernel 6, or 7.4 and
    newer. An empty answer dismisses the question. `input()` holds up the kernel until it is answered.

    Args:
        widgets: False asks with `input()` even where buttons would work.
    """

    def __init__(self, *, widgets: bool = True) -> None:
        self._widgets = widgets

    async def __call__(self, question: Question) -> Answer | str | None:
        """The answer, None where the person dismissed the question."""
        poll = _clicks() if self._widgets else None
        if poll is None:
            return _typed(question)
        return await _clicked(question, poll)


def _typed(question: Question) -> Answer | str | None:
    sys.stdout.write(f"{_head(question)}\n")
    for number, option in enumerate(question.options, 1):
        sys.stdout.write(f"  {number}  {_named(option)}\n")
    while True:
        try:
            said = input(_prompt(question)).strip()
        except EOFError:
            return None
        answer = read_answer(question, said)
        if answer is not None or not said:
            return answer
        sys.stdout.write(f"There is no choice {said}.\n")


def _prompt(question: Question) -> str:
    if not question.options:
        return "answer (empty to dismiss): "
    numbers = "numbers, with commas between" if question.multi_select else "number"
    return f"{numbers}{' or own words' if question.allow_free_text else ''} (empty to dismiss): "


def read_answer(question: Question, said: str) -> Answer | None:
    """What a person typed: numbers or labels of options, else own words where those are welcome; None for neither."""
    if not said:
        return None
    labels = [option.label for option in question.options]
    words = [word.strip() for word in said.split(",")] if question.multi_select and said not in labels else [said]
    chosen = [_label(labels, word) for word in words]
    if all(chosen):
        return Answer(tuple(dict.fromkeys(filter(None, chosen))))
    return Answer(text=said) if question.allow_free_text or not labels else None


def _label(labels: Sequence[str], word: str) -> str | None:
    if word in labels:
        return word
    is_number = word.isascii() and word.isdigit() and len(word) < len("1000") and 1 <= int(word) <= len(labels)
    return labels[int(word) - 1] if is_number else None


async def _clicked(question: Question, poll: Callable[[], Any]) -> Answer | str | None:
    """Ask with widgets; they are gone when the answer is there or the call is cancelled."""
    answered: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()

    def answer(value: Answer | None) -> None:
        if not answered.done():
            answered.set_result(value)

    form = _form(import_module("ipywidgets"), question, answer)
    import_module("IPython.display").display(form)
    try:
        while not answered.done():
            looked = poll()
            if inspect.isawaitable(looked):
                await looked
            await asyncio.wait([answered], timeout=ASK_POLL_SECONDS)
        return answered.result()
    finally:
        form.close()


def _form(widgets: Any, question: Question, answer: Callable[[Answer | None], None]) -> Any:
    """A button an option, or boxes to tick; all of it plain text, so that nothing in a question is markup."""
    wide = widgets.Layout(width="auto")
    rows: list[Any] = [widgets.Label(value=_head(question))]
    boxes: list[Any] = []
    for option in question.options:
        if question.multi_select:
            boxes.append(widgets.Checkbox(description=_named(option), indent=False, layout=wide))
        else:
            rows.append(_button(widgets, _named(option), answer, lambda label=option.label: Answer((label,))))
    field: Any = widgets.Text(placeholder="own words") if question.allow_free_text or not question.options else None
    rows += boxes

    def gathered() -> Answer | None:
        values = tuple(o.label for o, box in zip(question.options, boxes, strict=False) if box.value)
        text = field.value.strip() if field is not None else ""
        return Answer(values, text) if values or text else None

    buttons = [_button(widgets, "Dismiss", answer, lambda: None)]
    if field is not None or boxes:
        buttons.insert(0, _button(widgets, "Answer", answer, gathered))
    rows += [field] if field is not None else []
    return widgets.VBox([*rows, widgets.HBox(buttons)])


def _head(question: Question) -> str:
    return inert(f"{question.header}: {question.question}" if question.header else question.question)


def _named(option: Option) -> str:
    return inert(f"{option.label}: {option.description}" if option.description else option.label)


def _button(
    widgets: Any, text: str, answer: Callable[[Answer | None], None], value: Callable[[], Answer | None]
) -> Any:
    button = widgets.Button(description=text, layout=widgets.Layout(width="auto"))

    def clicked(_: object) -> None:
        answer(value())

    button.on_click(clicked)
    return button


def _shell() -> Any:
    """IPython's shell where this runs in one, and nothing is imported to find out."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def _clicks() -> Callable[[], Any] | None:
    """What lets clicks through while a cell runs; None where no click would ever arrive."""
    kernel: Any = getattr(_shell(), "kernel", None)
    if kernel is None:
        return None
    try:
        import_module("ipywidgets")
        version = tuple(import_module("ipykernel").version_info[:2])
    except (ImportError, AttributeError):
        return None
    if hasattr(kernel, "do_one_iteration"):
        return lambda: kernel.do_one_iteration()
    return (lambda: None) if version >= _HANDLES_CLICKS else None
