"""One table of situations that every adapter must turn into the same thing.

An adapter's test file runs it with a driver, so that a difference between frameworks is a row that fails::

    from tests.adapters.scenarios import SCENARIOS, Outcome, Scenario, check

    async def drive(scenario: Scenario) -> Outcome:
        # 1. Build the framework's ordinary agent over `scenario.tools()` (core tools in a ToolSet, made anew), with
        #    `scenario.policy` (None: none) and `scenario.window` (DEFAULT_WINDOW or None) given to the adapter.
        # 2. Script the model: each item of `scenario.turns` is a list of `Call`s (one turn, all at once) or a text,
        #    which ends the run.
        # 3. Whenever the run pauses for a person, answer with the next of `scenario.answers`, in the order of the
        #    calls: `Say` answers a question (a label or own words; None dismisses it), `Approve`, `Edit`, `Reject`
        #    and `Respond` answer an approval. Collect in `asked` what the person was shown, as text.
        # 4. `results` has one `Seen` for each call, in the order of the calls: what the model read, and what the
        #    program reads beside it (code and data of the envelope).

    @pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.id)
    async def test_scenario(scenario): check(scenario, await drive(scenario))

`scenario.cancel` is true for a row in which the driver cancels the run 0.3 s after it started: the driver awaits the
run, expects CancelledError (or what the framework makes of it), and returns an Outcome with `cancelled=True`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from tests.adapters.scenario_tools import PNG, STOPPED, make_all, make_deferred, make_tools
from toolkit_core.errors import HARD_CODES, ErrorCode
from toolkit_core.output_window import DEFAULT_WINDOW, Window
from toolkit_core.policy import Policy
from toolkit_core.tool import ToolSet


@dataclass(frozen=True)
class Call:
    """A tool call that the scripted model makes."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Say:
    """Answers a question; None dismisses it."""

    text: str | None


@dataclass(frozen=True)
class Approve:
    """Lets a call run."""


@dataclass(frozen=True)
class Edit:
    """Lets a call run with other arguments."""

    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Reject:
    """Refuses a call."""

    text: str = ""


@dataclass(frozen=True)
class Respond:
    """Gives the model a result of one's own."""

    text: str


Reply = Say | Approve | Edit | Reject | Respond


@dataclass(frozen=True)
class Seen:
    """What came of one call.

    Attributes:
        text: What the model read.
        is_error: Whether the framework marks it as an error.
        code: The envelope's error code for the program; None for a success.
        data: The envelope's payload for the program; "(no envelope)" where the framework itself answered.
        images: The bytes of the images that the model saw.
    """

    text: str
    is_error: bool
    code: str | None = None
    data: Any = None
    images: tuple[bytes, ...] = ()


NO_ENVELOPE = "(no envelope)"


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    results: tuple[Seen, ...]
    final: str
    asked: tuple[str, ...] = ()
    cancelled: bool = False


@dataclass(frozen=True)
class Want:
    """What is wanted of one call; None leaves it open."""

    text: str | None = None
    starts: str | None = None
    contains: tuple[str, ...] = ()
    is_error: bool = False
    code: str | None = None
    data: Any = None
    images: tuple[bytes, ...] = ()
    at_most_chars: int | None = None


@dataclass(frozen=True)
class Scenario:
    """One row."""

    id: str
    tools: Callable[[], ToolSet]
    turns: tuple[list[Call] | str, ...]
    want: tuple[Want, ...]
    answers: tuple[Reply, ...] = ()
    policy: Policy | None = None
    window: Window | None = DEFAULT_WINDOW
    asked: tuple[str, ...] = ()
    cancel: bool = False


def check(scenario: Scenario, outcome: Outcome) -> None:
    """Compare a run with its row."""
    if scenario.cancel:
        assert outcome.cancelled
        assert STOPPED[-1:] == [scenario.id], "the work of the cancelled call went on"
        return
    assert outcome.final == scenario.turns[-1], f"{scenario.id}: the run did not end with the model's answer"
    assert len(outcome.results) == len(scenario.want), outcome.results
    for seen, want in zip(outcome.results, scenario.want, strict=True):
        _check_one(seen, want)
    for shown, wanted in zip(outcome.asked, scenario.asked, strict=True):
        assert wanted in shown


def _check_one(seen: Seen, want: Want) -> None:
    assert seen.is_error == want.is_error, seen
    if want.text is not None:
        assert seen.text == want.text
    if want.starts is not None:
        assert seen.text.startswith(want.starts), seen.text[:200]
    for part in want.contains:
        assert part in seen.text, seen.text[:500]
    if want.code is not None or not want.is_error:
        assert seen.code == want.code, seen
    if want.data is not None:
        assert seen.data == want.data
    assert seen.images == want.images
    if want.at_most_chars is not None:
        assert len(seen.text) <= want.at_most_chars


# --- the rows -----------------------------------------------------------------------------------------


def _one(row: str, call: Call, want: Want, **options: Any) -> Scenario:
    return Scenario(row, make_tools, ([call], "done"), (want,), **options)


def _code_row(code: ErrorCode) -> Scenario:
    data = None if code in HARD_CODES else {"half": 1}
    want = Want(text=f"Error ({code}): failed with {code}\nDo it another way.", is_error=True, code=code, data=data)
    return _one(f"code-{code}", Call("fail", {"code": code}), want)


_INTERNAL = Want(starts="Error (internal): ", is_error=True, code="internal")
_INVALID = Want(starts="Error (invalid_arguments): ", is_error=True, code="invalid_arguments")


def _bad(row: str, tool: str, arguments: Any, *parts: str) -> Scenario:
    want = Want(starts="Error (invalid_arguments): ", contains=parts, is_error=True, code="invalid_arguments")
    return _one(f"bad-{row}", Call(tool, arguments), want)


def _deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"a": value}
    return value


_ECHO = Want(text="hi", data="hi")
_ASKING = Policy(ask=["send"], deny=["send(eve)"])
_SEND = Call("send", {"to": "ann", "text": "hi"})


def _approval(row: str, reply: Reply, want: Want, **options: Any) -> Scenario:
    return _one(f"approval-{row}", _SEND, want, answers=(reply,), policy=_ASKING, asked=("ann",), **options)


def _denied(*parts: str) -> Want:
    return Want(starts="Error (denied): ", contains=parts, is_error=True, code="denied")


SCENARIOS: list[Scenario] = [
    _one("success-text", Call("echo", {"text": "hi"}), _ECHO),
    _one("success-data", Call("add", {"a": 1, "b": 2}), Want(text='{"sum": 3}', data={"sum": 3})),
    _one("call-id", Call("who"), Want(text="id=True")),
    _one("image", Call("look"), Want(contains=("a picture",), data={"kind": "image"}, images=(PNG,))),
    *[_code_row(code) for code in get_args(ErrorCode)],
    _one(
        "long-output",
        Call("echo", {"text": "line", "times": 20_000}),
        Want(contains=("omitted",), at_most_chars=31_000),
    ),
    _one(
        "giant-line", Call("echo", {"text": "x" * 100_000}), Want(contains=("more characters",), at_most_chars=31_000)
    ),
    _one(
        "window-off",
        Call("echo", {"text": "line", "times": 20_000}),
        Want(text="\n".join(["line"] * 20_000)),
        window=None,
    ),
    _one("unicode", Call("echo", {"text": "naïve 世界 🎉 \u202e"}), Want(text="naïve 世界 🎉 \u202e")),
    _bad("missing", "add", {"a": 1}, "b"),
    _bad("wrong-type", "add", {"a": "one", "b": 2}, "a"),
    _bad("several", "add", {"a": "one", "c": 3}, "a", "b", "c"),
    _bad("extra", "echo", {"text": "x", "loud": True}, "loud"),
    _bad("nothing", "add", {}, "a", "b"),
    _bad("null", "add", {"a": None, "b": None}, "a", "b"),
    _bad("nan", "add", {"a": float("nan"), "b": 1}, "a"),
    _bad("surrogate", "echo", {"text": "a\ud800b"}),
    _bad("deep", "echo", {"text": _deep(150)}),
    _bad("alias-of-another-tool", "echo", {"recipient": "x"}),
    _one("lenient-number", Call("add", {"a": "1", "b": "2"}), Want(data={"sum": 3})),
    _one("lenient-null-optional", Call("echo", {"text": "hi", "times": None}), _ECHO),
    _one("lenient-alias", Call("send", {"recipient": "bob"}), Want(data={"to": "bob"})),
    _one("unknown-tool", Call("no_such_tool", {"x": 1}), Want(is_error=True)),
    _one("body-raises", Call("break_down", {"how": "raise"}), _INTERNAL),
    _one("body-exits", Call("break_down", {"how": "exit"}), _INTERNAL),
    _one("body-stray-cancel", Call("break_down", {"how": "cancel"}), _INTERNAL),
    _one(
        "body-unserialisable",
        Call("break_down", {"how": "object"}),
        Want(starts="Error (invalid_result): ", is_error=True, code="invalid_result"),
    ),
    Scenario(
        "parallel",
        make_tools,
        ([Call("echo", {"text": "a"}), Call("fail", {"code": "no_match"}), Call("echo", {"text": "b"})], "done"),
        (Want(text="a"), Want(is_error=True, code="no_match"), Want(text="b")),
    ),
    Scenario(
        "recovers-after-an-error",
        make_tools,
        ([Call("add", {"a": 1})], [Call("add", {"a": 1, "b": 1})], "two"),
        (_INVALID, Want(data={"sum": 2})),
    ),
    Scenario("no-tools-called", make_tools, ("just words",), ()),
    _one(
        "ask-answered", Call("confirm", {"what": "it"}), Want(text="it: yes"), answers=(Say("yes"),), asked=("Do it?",)
    ),
    _one(
        "ask-own-words",
        Call("confirm", {"what": "it"}),
        Want(text="it: later"),
        answers=(Say("later"),),
        asked=("Do it?",),
    ),
    _one(
        "ask-dismissed",
        Call("confirm", {"what": "it"}),
        Want(text="it: dismissed"),
        answers=(Say(None),),
        asked=("Do it?",),
    ),
    Scenario(
        "ask-parallel",
        make_tools,
        ([Call("confirm", {"what": "one"}), Call("confirm", {"what": "two"})], "done"),
        (Want(text="one: yes"), Want(text="two: no")),
        answers=(Say("yes"), Say("no")),
        asked=("Do one?", "Do two?"),
    ),
    Scenario(
        "ask-user-question",
        make_tools,
        (
            [
                Call(
                    "ask_user_question",
                    {"questions": [{"question": "Colour?", "options": ["red", "blue"]}, {"question": "Size?"}]},
                )
            ],
            "done",
        ),
        (
            Want(
                contains=("red", "XL"),
                data={
                    "answers": [
                        {"question": "Colour?", "values": ["red"]},
                        {"question": "Size?", "values": [], "text": "XL"},
                    ]
                },
            ),
        ),
        answers=(Say("red"), Say("XL")),
        asked=("Colour?", "Size?"),
    ),
    Scenario(
        "ask-user-question-dismissed",
        make_tools,
        ([Call("ask_user_question", {"questions": [{"question": "Sure?"}, {"question": "Really?"}]})], "done"),
        (
            Want(
                data={"answers": [{"question": "Sure?", "cancelled": True}, {"question": "Really?", "cancelled": True}]}
            ),
        ),
        answers=(Say(None),),
        asked=("Sure?",),
    ),
    Scenario(
        "ask-approval-is-no-answer",
        make_tools,
        ([Call("ask_user_question", {"questions": [{"question": "Delete?", "options": ["yes", "no"]}]})], "done"),
        (Want(data={"answers": [{"question": "Delete?", "cancelled": True}]}),),
        answers=(Say(""),),
        policy=Policy(mode="bypass"),
        asked=("Delete?",),
    ),
    _approval("approved", Approve(), Want(text="sent 'hi' to ann", data={"to": "ann"})),
    _approval("edited", Edit({"to": "carl", "text": "ho"}), Want(contains=("sent 'ho' to carl",), data={"to": "carl"})),
    _approval("edited-into-a-deny", Edit({"to": "eve"}), _denied()),
    _approval("edited-into-nonsense", Edit({"to": 3}), _INVALID),
    _approval("rejected", Reject("not today"), _denied("not today")),
    _approval("responded", Respond("I rang her."), Want(text="I rang her.")),
    _one("policy-denies", Call("send", {"to": "eve"}), _denied("send(eve)"), policy=_ASKING),
    _one("policy-denies-an-alias", Call("send", {"recipient": "eve"}), _denied(), policy=_ASKING),
    _one("policy-allows", _SEND, Want(data={"to": "ann"}), policy=Policy(allow=["send(ann)"])),
    _one("policy-reads-pass", Call("echo", {"text": "hi"}), _ECHO, policy=_ASKING),
    _one("policy-plan-denies", _SEND, _denied(), policy=Policy(mode="plan")),
    _one("policy-bad-arguments-ask-nobody", Call("send", {"to": 3}), _INVALID, policy=_ASKING),
    Scenario(
        "policy-parallel",
        make_tools,
        ([_SEND, Call("send", {"to": "eve"}), Call("send", {"to": "bob"})], "done"),
        (Want(data={"to": "ann"}), _denied(), _denied("no")),
        answers=(Approve(), Reject("no")),
        policy=_ASKING,
        asked=("ann", "bob"),
    ),
    Scenario(
        "deferred-looked-up",
        make_deferred,
        ([Call("tool_search", {"query": "weather"})], [Call("weather", {"city": "Bonn"})], "done"),
        (
            Want(
                contains=("weather",),
                data={
                    "loaded": [{"name": "weather", "description": "Tell the weather of a city."}],
                    "unavailable_sources": [],
                },
            ),
            Want(text="Bonn: rain"),
        ),
    ),
    Scenario(
        "deferred-not-found",
        make_deferred,
        ([Call("tool_search", {"names": ["nope"]})], "done"),
        (Want(is_error=True, code="not_found"),),
    ),
    Scenario(
        "deferred-no-match",
        make_deferred,
        ([Call("tool_search", {"query": "zebra"})], "done"),
        (Want(data={"loaded": [], "unavailable_sources": []}),),
    ),
    Scenario(
        "deferred-not-loaded",
        make_deferred,
        ([Call("weather", {"city": "Bonn"})], "done"),
        (Want(is_error=True),),
    ),
    Scenario(
        "deferred-of-300",
        make_all,
        ([Call("tool_search", {"names": ["tool_299"]})], [Call("tool_299", {"text": "hi"})], "done"),
        (Want(contains=("tool_299",)), Want(text="hi")),
    ),
    Scenario("cancelled", make_tools, ([Call("wait_long", {"row": "cancelled"})], "never"), (), cancel=True),
]
