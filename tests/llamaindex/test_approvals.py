"""The approval gate by events, on real agents with the real policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.workflow import Context, InputRequiredEvent
from pydantic import Field
from workflows.errors import WorkflowCancelledByUser

from toolkit_core import Arguments, Effects, ToolContext, ToolResult, function_tool, port_tool
from toolkit_core.policy import Decision, Policy
from toolkit_core.ports.ask import Question
from toolkit_llamaindex import ApprovalRequestEvent, ApprovalResponseEvent, QuestionEvent, to_llamaindex
from toolkit_llamaindex.testing import tool_call

from .agents import KINDS, RUN_SECONDS, Kind, Run, agent_of, follow, memory, response, run_agent, serialised, texts


class DeployArguments(Arguments):
    target: str = Field(description="Where to.")


class Deployments:
    """A tool whose subject depends on the surroundings: an alias is resolved when the call is judged and run."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.aliases: dict[str, str] = {}
        self.seconds = 0.0

        async def run(arguments: DeployArguments, context: ToolContext) -> ToolResult[dict[str, Any]]:
            real = self.aliases.get(arguments.target, arguments.target)
            await asyncio.sleep(self.seconds)
            self.ran.append(real)
            return ToolResult.ok(f"deployed {real}", {"target": real})

        async def subject(arguments: DeployArguments) -> str:
            return self.aliases.get(arguments.target, arguments.target)

        async def writes(arguments: DeployArguments) -> tuple[str, ...]:
            return (f"/srv/{self.aliases.get(arguments.target, arguments.target)}",)

        self.tool = port_tool(
            DeployArguments,
            run,
            kind="deploy",
            describe=lambda siblings: "Deploy.",
            payload=dict[str, Any],
            effects=Effects(writes=True, destructive=True),
            subject=subject,
            writes=writes,
        )

    def converted(self, policy: Any = None, **options: Any) -> Any:
        return to_llamaindex(self.tool, policy=policy or Policy(deny=["deploy(prod)"]), **options)


def answering(answer: Callable[[ApprovalRequestEvent], Any]) -> Callable[[Any], Any]:
    return lambda event: answer(event) if isinstance(event, ApprovalRequestEvent) else None


async def deploy(
    kind: Kind, it: Deployments, answer: Callable[[ApprovalRequestEvent], Any], target: str = "dev"
) -> Run:
    turns = [tool_call("deploy", target=target), "done"]
    run = await run_agent(kind, it.converted(), turns, respond=answering(answer))
    assert run.text == "done"
    assert run.output.content in texts(run.last_messages)
    return run


@pytest.mark.parametrize("kind", KINDS)
async def test_approve_runs_the_call_once(kind: Kind) -> None:
    it = Deployments()
    run = await deploy(kind, it, lambda request: request.approve())
    assert (it.ran, run.output.content) == (["dev"], "deployed dev")
    [request] = [event for event in run.events if isinstance(event, ApprovalRequestEvent)]
    assert isinstance(request, InputRequiredEvent)
    assert (request.tool_name, request.arguments, request.subject) == ("deploy", {"target": "dev"}, "dev")
    assert (request.writes, request.risk) == (["/srv/dev"], "modify")
    assert "destroy" in request.reason
    assert "deploy(dev)" in request.prefix


@pytest.mark.parametrize("kind", KINDS)
async def test_edit_runs_the_edited_call(kind: Kind) -> None:
    it = Deployments()
    run = await deploy(kind, it, lambda request: request.edit({"target": "test"}))
    assert (it.ran, run.output.content) == (["test"], "deployed test")


@pytest.mark.parametrize("kind", KINDS)
async def test_an_edited_call_is_judged_again(kind: Kind) -> None:
    it = Deployments()
    run = await deploy(kind, it, lambda request: request.edit({"target": "prod"}))
    assert it.ran == []
    assert run.output.raw_output["error"]["code"] == "denied"
    assert "deploy(prod)" in run.output.content


@pytest.mark.parametrize("arguments", [{}, {"target": 3}, {"target": "dev", "more": 1}, None])
async def test_an_edit_that_is_no_call_is_an_error_the_model_reads(arguments: Any) -> None:
    it = Deployments()
    run = await deploy(
        "function",
        it,
        lambda request: ApprovalResponseEvent(approval_id=request.approval_id, action="edit", arguments=arguments),
    )
    assert it.ran == []
    assert run.output.raw_output["error"]["code"] == "invalid_arguments"


@pytest.mark.parametrize("kind", KINDS)
async def test_reject_tells_the_model_why(kind: Kind) -> None:
    it = Deployments()
    run = await deploy(kind, it, lambda request: request.reject("not on a Friday"))
    assert it.ran == []
    assert run.output.is_error
    assert run.output.raw_output["error"]["code"] == "denied"
    assert "not on a Friday" in run.output.content


@pytest.mark.parametrize("kind", KINDS)
async def test_respond_is_the_result_and_nothing_runs(kind: Kind) -> None:
    it = Deployments()
    run = await deploy(kind, it, lambda request: request.respond("it is deployed already"))
    assert (it.ran, run.output.content, run.output.is_error) == ([], "it is deployed already", False)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_denied_call_asks_nobody(kind: Kind) -> None:
    it = Deployments()
    run = await deploy(kind, it, lambda request: request.approve(), target="prod")
    assert it.ran == []
    assert run.output.raw_output["error"]["code"] == "denied"
    assert not any(isinstance(event, ApprovalRequestEvent) for event in run.events)


async def test_an_allowed_call_asks_nobody() -> None:
    it = Deployments()
    tools = it.converted(Policy(allow=["deploy(dev)"]))
    run = await run_agent("function", tools, [tool_call("deploy", target="dev"), "done"])
    assert run.output.content == "deployed dev"


async def test_bad_arguments_ask_nobody() -> None:
    it = Deployments()
    run = await run_agent("function", it.converted(), [tool_call("deploy", target=3), "done"])
    assert run.output.raw_output["error"]["code"] == "invalid_arguments"


@pytest.mark.parametrize("kind", KINDS)
async def test_an_approval_of_what_has_changed_meanwhile_is_refused(kind: Kind) -> None:
    it = Deployments()
    it.aliases["dev"] = "dev-1"

    def approve_late(request: ApprovalRequestEvent) -> Any:
        assert request.subject == "dev-1"
        it.aliases["dev"] = "elsewhere"
        return request.approve()

    run = await deploy(kind, it, approve_late)
    assert it.ran == []
    assert run.output.raw_output["error"]["code"] == "denied"
    assert "elsewhere" in run.output.content


async def test_what_changes_between_judgement_and_call_is_refused_too() -> None:
    it = Deployments()
    it.aliases["dev"] = "dev-1"

    class Swap:
        async def decide(self, tool: Any, arguments: Any) -> Decision:
            it.aliases["dev"] = "elsewhere"
            return Decision("allow", "")

    run = await run_agent("function", it.converted(Swap()), [tool_call("deploy", target="dev"), "done"])
    assert it.ran == []
    assert run.output.raw_output["error"]["code"] == "denied"


async def test_a_rejection_holds_when_the_policy_would_allow_by_now() -> None:
    it = Deployments()
    mind = {"action": "ask"}

    class Fickle:
        async def decide(self, tool: Any, arguments: Any) -> Decision:
            return Decision(mind["action"], "")  # pyright: ignore[reportArgumentType]  (one of the actions)

    def reject(request: ApprovalRequestEvent) -> Any:
        mind["action"] = "allow"
        return request.reject()

    turns = [tool_call("deploy", target="dev"), "done"]
    run = await run_agent("function", it.converted(Fickle()), turns, respond=answering(reject))
    assert it.ran == []
    assert run.output.is_error


class Changing:
    """A policy that becomes another one while a request is open."""

    def __init__(self, *policies: Policy) -> None:
        self.policies = list(policies)
        self.asked = 0

    async def decide(self, tool: Any, arguments: Any) -> Decision:
        self.asked += 1
        return await self.policies[0].decide(tool, arguments)

    def answer(self, action: str) -> Callable[[Any], Any]:
        def change(request: ApprovalRequestEvent) -> Any:
            self.policies.pop(0)
            return request.approve() if action == "approve" else request.edit({"target": "test"})

        return answering(change)


STRICTER = [Policy(deny=["deploy"]), Policy(deny=["deploy(dev)", "deploy(test)"]), Policy(mode="plan")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("action", ["approve", "edit"])
@pytest.mark.parametrize("stricter", STRICTER, ids=["by name", "by pattern", "by mode"])
async def test_an_approved_call_that_is_denied_by_now_does_not_run(kind: Kind, action: str, stricter: Policy) -> None:
    it, policy = Deployments(), Changing(Policy(), stricter)
    turns = [tool_call("deploy", target="dev"), "done"]
    run = await run_agent(kind, it.converted(policy), turns, respond=policy.answer(action))
    assert it.ran == []
    assert run.text == "done"
    assert run.output.raw_output["error"]["code"] == "denied"
    assert (await stricter.decide(it.tool, {"target": "dev"})).reason.split("(")[0] in run.output.content


@pytest.mark.parametrize(
    "later", [Policy(), Policy(ask=["deploy"]), Policy(allow=["deploy"])], ids=["same", "ask", "allow"]
)
@pytest.mark.parametrize(("action", "ran"), [("approve", "dev"), ("edit", "test")])
async def test_control_an_approval_stands_where_the_policy_does_not_deny(later: Policy, action: str, ran: str) -> None:
    it, policy = Deployments(), Changing(Policy(), later)
    turns = [tool_call("deploy", target="dev"), "done"]
    run = await run_agent("function", it.converted(policy), turns, respond=policy.answer(action))
    assert (it.ran, run.output.is_error) == ([ran], False)
    assert len([event for event in run.events if isinstance(event, ApprovalRequestEvent)]) == 1
    assert policy.asked == 2


async def test_a_policy_that_fails_on_an_approved_call_refuses() -> None:
    it = Deployments()

    class Breaking:
        asked = 0

        async def decide(self, tool: Any, arguments: Any) -> Decision:
            self.asked += 1
            if self.asked > 1:
                raise LookupError("secret")
            return Decision("ask", "")

    turns = [tool_call("deploy", target="dev"), "done"]
    run = await run_agent("function", it.converted(Breaking()), turns, respond=answering(lambda r: r.approve()))
    assert it.ran == []
    assert run.output.raw_output["error"]["code"] == "denied"
    assert "secret" not in run.output.content


async def test_a_policy_that_fails_refuses() -> None:
    it = Deployments()

    class Broken:
        async def decide(self, tool: Any, arguments: Any) -> Decision:
            raise LookupError("secret")

    run = await run_agent("function", it.converted(Broken()), [tool_call("deploy", target="dev"), "done"])
    assert it.ran == []
    assert run.output.raw_output["error"]["code"] == "denied"
    assert "secret" not in run.output.content


async def test_parallel_calls_are_approved_one_by_one() -> None:
    it = Deployments()
    turn = [tool_call("deploy", target=target) for target in ("a", "b", "c", "a")]
    waiting: list[ApprovalRequestEvent] = []

    def answer(request: ApprovalRequestEvent) -> Any:
        waiting.append(request)
        if len(waiting) < 4:
            return None
        return [r.reject() if r.subject == "b" else r.approve() for r in reversed(waiting)]

    run = await run_agent("function", it.converted(), [turn, "done"], respond=answering(answer))
    assert sorted(it.ran) == ["a", "a", "c"]
    assert len(run.outputs) == 4
    assert sum(output.is_error for output in run.outputs) == 1


async def test_three_approvals_of_one_call_run_it_once() -> None:
    it = Deployments()
    it.seconds = 0.3
    run = await deploy("function", it, lambda request: [request.approve()] * 3)
    assert it.ran == ["dev"]
    assert len(run.outputs) == 1


async def test_answers_that_belong_to_nothing_change_nothing() -> None:
    it = Deployments()

    def answer(request: ApprovalRequestEvent) -> Any:
        stale = ApprovalResponseEvent(approval_id="of another call", action="approve")
        stock = response("yes", approval_id=request.approval_id)
        return [stale, stock, request.reject("no")]

    run = await deploy("function", it, answer)
    assert it.ran == []
    assert "no" in run.output.content


async def test_nobody_answers_in_time() -> None:
    it = Deployments()
    tools = it.converted(answer_timeout_seconds=0.3)
    run = await run_agent("function", tools, [tool_call("deploy", target="dev"), "done"])
    assert it.ran == []
    assert run.output.raw_output["error"]["code"] == "denied"


def test_where_nobody_can_be_asked_the_call_is_refused() -> None:
    it = Deployments()
    [tool] = it.converted()
    assert tool.call(target="dev").raw_output["error"]["code"] == "denied"
    assert asyncio.run(tool.acall(target="dev")).raw_output["error"]["code"] == "denied"
    [unbound] = it.converted(bind_context=False)
    assert "denied" in unbound.fn(target="dev")
    assert it.ran == []


async def test_a_run_cancelled_while_a_request_is_open_runs_nothing() -> None:
    it = Deployments()
    agent, _ = agent_of("function", it.converted(), [tool_call("deploy", target="dev"), "done"])
    handler = agent.run(user_msg="go")
    async for event in handler.stream_events():
        if isinstance(event, ApprovalRequestEvent):
            break
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await asyncio.wait_for(handler, RUN_SECONDS)
    assert it.ran == []


async def resumed_elsewhere(
    second: Deployments, policy: Any, answer: Callable[[Any], Any], *, early: bool = True
) -> Run:
    """Suspend a run at its request, and answer in an agent that was built anew, as another process does."""
    first = Deployments()
    agent, _ = agent_of("function", first.converted(), [tool_call("deploy", target="dev")])
    handler = agent.run(user_msg="go", ctx=Context(agent))
    request: Any = None
    async for event in handler.stream_events():
        if isinstance(event, ApprovalRequestEvent):
            request = event
            break
    text = await serialised(handler)
    agent, model = agent_of("function", second.converted(policy), ["done"])
    resumed = agent.run(ctx=Context.from_dict(agent, json.loads(text)))
    await resumed.ctx.store.set("memory", memory(model))
    if not early:
        await asyncio.sleep(0.3)
    resumed.ctx.send_event(answer(request))
    run = await follow(resumed, model)
    assert first.ran == []
    return run


@pytest.mark.parametrize("early", [True, False], ids=["answered at once", "answered later"])
@pytest.mark.parametrize("changed", [False, True])
async def test_a_request_is_answered_in_another_process(changed: bool, early: bool) -> None:
    second = Deployments()
    if changed:
        second.aliases["dev"] = "elsewhere"
    run = await resumed_elsewhere(second, None, lambda request: request.approve(), early=early)
    assert run.output.is_error is changed
    assert second.ran == ([] if changed else ["dev"])


@pytest.mark.parametrize("early", [True, False], ids=["answered at once", "answered later"])
@pytest.mark.parametrize("action", ["approve", "edit"])
async def test_an_answer_in_another_process_is_held_to_the_stricter_policy_there(action: str, early: bool) -> None:
    def answer(request: ApprovalRequestEvent) -> Any:
        return request.approve() if action == "approve" else request.edit({"target": "test"})

    second = Deployments()
    run = await resumed_elsewhere(second, Policy(deny=["deploy"]), answer, early=early)
    assert second.ran == []
    assert run.text == "done"
    assert run.output.raw_output["error"]["code"] == "denied"
    assert "the rule deploy denies it" in run.output.content


async def test_an_approved_tool_may_ask_a_question_of_its_own() -> None:
    ran: list[str] = []

    @function_tool
    async def pay(amount: int, context: ToolContext) -> str:
        """Pay."""
        assert context.ask is not None
        ran.append(str(await context.ask(Question("q", "From which account?"))))
        return f"paid {amount}"

    def respond(event: Any) -> Any:
        if isinstance(event, ApprovalRequestEvent):
            return event.edit({"amount": 5})
        return event.answer("mine") if isinstance(event, QuestionEvent) else None

    tools = to_llamaindex(pay, policy=Policy())
    run = await run_agent("function", tools, [tool_call("pay", amount=500), "done"], respond=respond)
    assert (run.output.content, ran) == ("paid 5", ["mine"])
    assert len([event for event in run.events if isinstance(event, ApprovalRequestEvent)]) == 1
