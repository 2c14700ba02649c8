"""Questions to a person on real agents: replayed, parallel, dismissed, unanswered, resumed elsewhere."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import (
    Context,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,  # pyright: ignore[reportUnknownVariableType]  (LlamaIndex's decorator is half typed)
)
from workflows.errors import WorkflowCancelledByUser

from toolkit_core import Answer, Question, ToolContext, function_tool
from toolkit_core.ports.ask import Option
from toolkit_core.tools._ask_user_question import ask_user_question_tool
from toolkit_llamaindex import QuestionEvent, to_llamaindex
from toolkit_llamaindex.ask import answer_of
from toolkit_llamaindex.testing import tool_call

from .agents import KINDS, RUN_SECONDS, Kind, agent_of, follow, memory, response, run_agent, serialised


def reply(answers: dict[str, Any]) -> Callable[[Any], Any]:
    """Answers each question by its text."""

    def respond(event: Any) -> Any:
        if not isinstance(event, QuestionEvent):
            return None
        return response(answers[event.question], question_id=event.question_id)

    return respond


def questions(*names: str) -> dict[str, Any]:
    return {"questions": [{"question": name} for name in names]}


class Asker:
    """A tool that asks questions, and counts how often its body began and ended."""

    def __init__(self, questions_asked: int = 2) -> None:
        self.begun = self.ended = 0

        @function_tool
        async def order(what: str, context: ToolContext) -> str:
            """Order something."""
            self.begun += 1
            assert context.ask is not None
            answers = [await context.ask(Question(f"q{n}", f"{what} {n}?")) for n in range(questions_asked)]
            self.ended += 1
            return f"{what}: {answers}"

        self.tools = to_llamaindex(order)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("streaming", [True, False])
async def test_two_questions_are_each_asked_once_and_answered_in_order(kind: Kind, streaming: bool) -> None:
    asker = Asker()
    run = await run_agent(
        kind,
        asker.tools,
        [tool_call("order", what="tea"), "done"],
        respond=reply({"tea 0?": "green", "tea 1?": "two"}),
        streaming=streaming,
    )
    assert run.text == "done"
    assert run.output.content == "tea: ['green', 'two']"
    asked = [event.question for event in run.events if isinstance(event, QuestionEvent)]
    assert asked == ["tea 0?", "tea 1?"]
    assert (asker.begun, asker.ended) == (3, 1)


async def test_answers_of_parallel_calls_never_cross() -> None:
    asker = Asker()
    turn = [tool_call("order", what="tea"), tool_call("order", what="tea"), tool_call("order", what="cake")]
    numbers = iter(range(100))
    waiting: list[QuestionEvent] = []

    def respond(event: Any) -> Any:
        if not isinstance(event, QuestionEvent):
            return None
        waiting.append(event)
        if len(waiting) < 3:
            return None
        answered = [event.answer(f"{event.question_id}={next(numbers)}") for event in reversed(waiting)]
        waiting.clear()
        return answered

    run = await run_agent("function", asker.tools, [turn, "done"], respond=respond)
    assert len(run.outputs) == 3
    for number in (1, 2, 3):
        [own] = [output for output in run.outputs if f"call_{number}#0=" in output.content]
        assert own.content.count(f"call_{number}#") == 2
    assert asker.ended == 3


@pytest.mark.parametrize("same", ["order", "", "call_0"], ids=["the tool's name for an id", "no id", "one id for all"])
@pytest.mark.parametrize("second", ["cake", "tea"])
async def test_calls_whose_ids_do_not_tell_them_apart_do_not_cross(same: str, second: str) -> None:
    from toolkit_llamaindex.testing import ScriptedCall

    asker = Asker()
    turn = [ScriptedCall("order", {"what": what}, id=same) for what in ("tea", second)]

    def respond(event: Any) -> Any:
        return event.answer(event.question) if isinstance(event, QuestionEvent) else None

    run = await run_agent("function", asker.tools, [turn, "done"], respond=respond)
    wanted = [f"{what}: ['{what} 0?', '{what} 1?']" for what in ("tea", second)]
    assert sorted(output.content for output in run.outputs) == sorted(wanted)


@pytest.mark.parametrize("kind", KINDS)
async def test_ask_user_question_takes_labels_and_own_words(kind: Kind) -> None:
    asked = {"question": "Colour?", "header": "Paint", "options": [{"label": "red"}, {"label": "blue"}]}
    arguments = {"questions": [asked, {"question": "Why?"}]}
    run = await run_agent(
        kind,
        to_llamaindex(ask_user_question_tool()),
        [tool_call("ask_user_question", arguments), "done"],
        respond=reply({"Colour?": "blue", "Why?": "it is calm"}),
    )
    answers = run.output.raw_output["data"]["answers"]
    assert answers == [
        {"question": "Colour?", "values": ["blue"]},
        {"question": "Why?", "values": [], "text": "it is calm"},
    ]
    [first, _] = [event for event in run.events if isinstance(event, QuestionEvent)]
    assert isinstance(first, InputRequiredEvent)
    assert (first.header, first.prefix, first.tool_name) == ("Paint", "Colour?", "ask_user_question")
    assert [option["label"] for option in first.options] == ["red", "blue"]


async def test_a_dismissal_cancels_the_rest_and_keeps_what_was_answered() -> None:
    run = await run_agent(
        "function",
        to_llamaindex(ask_user_question_tool()),
        [tool_call("ask_user_question", questions("A?", "B?", "C?")), "done"],
        respond=reply({"A?": "yes", "B?": None}),
    )
    assert run.output.raw_output["data"]["answers"] == [
        {"question": "A?", "values": [], "text": "yes"},
        {"question": "B?", "cancelled": True},
        {"question": "C?", "cancelled": True},
    ]
    assert not run.output.is_error


@pytest.mark.parametrize("nonsense", ["", "  ", 7, {"x": 1}, [1, 2], {"values": 3}, {"values": [None]}, b"yes", True])
async def test_nonsense_is_no_answer(nonsense: Any) -> None:
    run = await run_agent(
        "function",
        to_llamaindex(ask_user_question_tool()),
        [tool_call("ask_user_question", questions("A?")), "done"],
        respond=reply({"A?": nonsense}),
    )
    assert run.output.raw_output["data"]["answers"] == [{"question": "A?", "cancelled": True}]


async def test_nobody_answers_in_time() -> None:
    tools = to_llamaindex(ask_user_question_tool(), answer_timeout_seconds=0.3)
    run = await run_agent("function", tools, [tool_call("ask_user_question", questions("A?")), "done"])
    assert run.output.raw_output["data"]["answers"] == [{"question": "A?", "cancelled": True}]


async def test_without_a_workflow_nobody_can_be_asked() -> None:
    [tool] = to_llamaindex(ask_user_question_tool())
    for output in (tool.call(questions("A?")), await tool.acall(questions("A?"))):
        assert not output.is_error
        assert output.raw_output["data"]["unavailable"] is True


async def test_a_run_cancelled_while_a_question_is_open_ends_at_once() -> None:
    asker = Asker()
    agent, _ = agent_of("function", asker.tools, [tool_call("order", what="tea"), "done"])
    handler = agent.run(user_msg="go")
    async for event in handler.stream_events():
        if isinstance(event, QuestionEvent):
            break
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await asyncio.wait_for(handler, RUN_SECONDS)
    assert (asker.begun, asker.ended) == (1, 0)


async def until_asked(handler: Any) -> QuestionEvent:
    """The run's first question."""
    async for event in handler.stream_events():
        if isinstance(event, QuestionEvent):
            return event
    raise AssertionError("no question")


@pytest.mark.parametrize("early", [True, False], ids=["answered at once", "answered later"])
@pytest.mark.parametrize("questions_asked", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_context_serialised_while_a_question_is_open_resumes_elsewhere(
    kind: Kind, questions_asked: int, early: bool
) -> None:
    first = Asker(questions_asked)
    agent, _ = agent_of(kind, first.tools, [tool_call("order", what="tea")])
    handler = agent.run(user_msg="go", ctx=Context(agent))
    opened = await asyncio.wait_for(until_asked(handler), RUN_SECONDS)
    text = await serialised(handler)

    second = Asker(questions_asked)
    agent, model = agent_of(kind, second.tools, ["done"])
    restored: Context[Any] = Context.from_dict(agent, json.loads(text))
    resumed = agent.run(ctx=restored)
    await resumed.ctx.store.set("memory", memory(model))
    if not early:
        await asyncio.sleep(0.3)
    resumed.ctx.send_event(opened.answer("green"))
    run = await follow(resumed, model, reply({"tea 0?": "again", "tea 1?": "two"}))
    assert run.output.content == f"tea: {['green', 'two'][:questions_asked]}"
    assert run.text == "done"
    assert second.ended == 1
    assert [event.question for event in run.events if isinstance(event, QuestionEvent)] == ["tea 1?"][
        : questions_asked - 1
    ]


def in_a_group(asked: list[str], waits: Callable[[int, int], float]) -> Any:
    """A tool whose child tasks each ask; `waits` says how long one of them takes before, execution by execution."""
    executions = itertools.count()

    @function_tool
    async def order(context: ToolContext) -> str:
        """Order several things."""
        execution = next(executions)

        async def one(number: int) -> str:
            assert context.ask is not None
            await asyncio.sleep(waits(execution, number))
            return f"{asked[number]}={await context.ask(Question('q', f'{asked[number]}?'))}"

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(number)) for number in range(len(asked))]
        return " ".join(task.result() for task in tasks)

    return to_llamaindex(order)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("asked", [["tea"], ["tea", "cake"]])
async def test_tasks_of_a_group_may_ask(kind: Kind, asked: list[str]) -> None:
    answers = {"tea?": "green", "cake?": "apple"}
    tools = in_a_group(asked, lambda execution, number: 0)
    run = await run_agent(kind, tools, [tool_call("order"), "done"], respond=reply(answers))
    assert run.text == "done"
    assert run.output.content == " ".join(f"{thing}={answers[f'{thing}?']}" for thing in asked)
    seen = [event.question for event in run.events if isinstance(event, QuestionEvent)]
    assert seen == [f"{thing}?" for thing in asked]


async def test_answers_do_not_cross_when_tasks_ask_in_another_order_at_the_replay() -> None:
    def waits(execution: int, number: int) -> float:
        return 0.2 if number == execution % 2 else 0

    run = await run_agent(
        "function",
        in_a_group(["tea", "cake"], waits),
        [tool_call("order"), "done"],
        respond=reply({"tea?": "green", "cake?": "apple"}),
    )
    assert run.output.content == "tea=green cake=apple"
    assert [event.question for event in run.events if isinstance(event, QuestionEvent)] == ["cake?", "tea?"]


async def test_tasks_that_ask_the_same_are_each_answered() -> None:
    tools = in_a_group(["tea", "tea"], lambda execution, number: 0)
    run = await run_agent("function", tools, [tool_call("order"), "done"], respond=reply({"tea?": "green"}))
    assert run.output.content == "tea=green tea=green"
    assert len([event for event in run.events if isinstance(event, QuestionEvent)]) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gap_seconds", [0, 0.1])
async def test_a_second_answer_to_one_question_runs_nothing_twice(kind: Kind, gap_seconds: float) -> None:
    ran: list[str] = []

    @function_tool
    async def pay(context: ToolContext) -> str:
        """Pay."""
        assert context.ask is not None
        answer = await context.ask(Question("q", "Pay?"))
        ran.append(str(answer))
        await asyncio.sleep(0.4)
        return "paid"

    agent, model = agent_of(kind, to_llamaindex(pay), [tool_call("pay"), "done"])
    handler = agent.run(user_msg="go")

    async def twice() -> None:
        asked = await until_asked(handler)
        for _ in range(3):
            handler.ctx.send_event(asked.answer("yes"))
            await asyncio.sleep(gap_seconds)

    await asyncio.wait_for(twice(), RUN_SECONDS)
    run = await follow(handler, model)
    assert (run.text, ran, len(run.outputs)) == ("done", ["yes"], 1)


async def test_control_the_same_second_answer_runs_a_stock_tool_twice() -> None:
    ran: list[str] = []

    async def pay(ctx: Context) -> str:
        """Pay."""
        event = await ctx.wait_for_event(HumanResponseEvent, waiter_event=InputRequiredEvent())
        ran.append(event.response)
        await asyncio.sleep(0.4)
        return "paid"

    pay.__annotations__["ctx"] = Context
    stock = FunctionTool.from_defaults(async_fn=pay)
    agent, _ = agent_of("function", [stock], [tool_call("pay"), "done", "done"])
    handler = agent.run(user_msg="go")
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(response("yes"))
            handler.ctx.send_event(response("yes"))
    await asyncio.wait_for(handler, RUN_SECONDS)
    assert ran == ["yes", "yes"]


async def test_a_step_of_ones_own_may_call_a_tool_twice() -> None:
    asker = Asker()

    class Own(Workflow):
        @step
        async def start(self, ctx: Context, ev: StartEvent) -> StopEvent:
            outputs = [await asker.tools[0].acall(ctx=ctx, what=what) for what in ("tea", "cake", "tea")]
            return StopEvent(result=[output.content for output in outputs])

    handler: Any = Own().run()

    async def work() -> Any:
        async for event in handler.stream_events():
            if isinstance(event, QuestionEvent):
                handler.ctx.send_event(event.answer(event.question))
        return await handler

    tea, cake = "tea: ['tea 0?', 'tea 1?']", "cake: ['cake 0?', 'cake 1?']"
    assert await asyncio.wait_for(work(), RUN_SECONDS) == [tea, cake, tea]


def test_what_a_response_means() -> None:
    question = Question("q", "Which?", options=(Option("a"), Option("b")), multi_select=True)
    assert answer_of("a", question) == Answer(("a",))
    assert answer_of("c", question) == "c"
    assert answer_of(["a", "b"], question) == Answer(("a", "b"))
    assert answer_of({"values": ["a"], "text": "but"}, question) == Answer(("a",), "but")
    assert answer_of({"answer": "b"}, question) == Answer(("b",))
    event = QuestionEvent(question_id="1", question="Which?")
    assert event.answer("a").response == "a"
    assert event.answer("a", "b", text="t").response == {"values": ["a", "b"], "text": "t"}
    assert event.dismiss().response is None
