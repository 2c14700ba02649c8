"""Rules and modes to one decision."""

from __future__ import annotations

import asyncio
import shlex
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from toolkit_core import Arguments, Claims, Effects, Tool, ToolContext, ToolError, ToolResult, function_tool, port_tool
from toolkit_core.command_words import split_command
from toolkit_core.policy import Mode, Policy, Rule

EXECUTES = Effects(reads=True, writes=True, destructive=True, network=True, executes=True)


class Path(Arguments):
    path: str = Field(description="Where.")


class Command(Arguments):
    command: str = Field(description="What.")


async def nothing(arguments: Any, context: ToolContext) -> ToolResult[dict[str, Any]]:
    return ToolResult.ok("done", {})


async def path_of(arguments: Path) -> str:
    if arguments.path == "broken":
        raise ToolError("no such place", code="access_denied")
    return arguments.path


async def written(arguments: Path) -> tuple[str, ...]:
    return (arguments.path if arguments.path.startswith("/") else f"/w/{arguments.path}",)


async def claimed(arguments: Path) -> Claims:
    return Claims(paths=await written(arguments), read_only=True)


async def command_of(arguments: Command) -> str:
    return arguments.command


def path_tool(kind: str, effects: Effects, **options: Any) -> Tool[Any]:
    return port_tool(
        Path,
        nothing,
        kind=kind,
        describe=lambda _: f"Does {kind}.",
        payload=dict[str, Any],
        effects=effects,
        subject=path_of,
        **options,
    )


READ = path_tool("read_file", Effects(reads=True), claims=claimed)
WRITE = path_tool("write_file", Effects(writes=True, destructive=True), writes=written)
NOTE = path_tool("memory_write", Effects(writes=True), writes=written)
FETCH = path_tool("web_fetch", Effects(network=True))
SHELL: Tool[Any] = port_tool(
    Command,
    nothing,
    kind="shell",
    describe=lambda _: "Runs.",
    payload=dict[str, Any],
    effects=EXECUTES,
    aliases=("bash",),
    subject=command_of,
)


@function_tool
async def custom(a: int = 1) -> str:
    """Custom."""
    return ""


async def action(policy: Policy, tool: Tool[Any], value: str = "a.txt") -> str:
    arguments = {"command": value} if tool.kind == "shell" else {"path": value} if tool.kind != "custom" else {}
    decision = await policy.decide(tool, arguments)
    assert decision.reason
    return decision.action


MODES: dict[Mode, str] = {
    # read, write, note, fetch, shell, custom
    "plan": "allow deny deny ask deny deny",
    "default": "allow ask allow ask ask ask",
    "accept_edits": "allow allow allow ask ask ask",
    "bypass": "allow allow allow allow allow allow",
}


@pytest.mark.parametrize("mode", MODES)
async def test_each_mode_says_what_holds_without_rules(mode: Mode) -> None:
    tools = [READ, WRITE, NOTE, FETCH, SHELL, custom]
    assert " ".join([await action(Policy(mode=mode), tool) for tool in tools]) == MODES[mode]


async def test_edits_outside_the_root_ask_in_accept_edits() -> None:
    assert await action(Policy(mode="accept_edits"), WRITE, "/etc/passwd") == "ask"


async def test_deny_goes_before_ask_before_allow_before_the_mode() -> None:
    assert await action(Policy(allow=["shell"], ask=["shell"], deny=["shell"], mode="bypass"), SHELL, "ls") == "deny"
    assert await action(Policy(allow=["shell"], ask=["shell"], mode="bypass"), SHELL, "ls") == "ask"
    assert await action(Policy(allow=["shell"], mode="plan"), SHELL, "ls") == "allow"


async def test_a_rule_for_an_alias_holds_for_the_tool() -> None:
    assert await action(Policy(deny=["bash(rm *)"]), SHELL, "rm -rf /") == "deny"
    assert await action(Policy(allow=["bash(ls*)"]), SHELL, "ls -l") == "allow"


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**/.env*", ".env", True),
        ("**/.env*", "a/b/.env.local", True),
        ("**/.env*", "/outside/.env", True),
        ("**/.env*", "a/env", False),
        ("src/*", "src/a/b.py", True),
        ("./src/*", "src/a.py", True),
        ("/w/secret/*", "secret/key", True),
        ("*", "anything\nat all", True),
        ("a*b*c", "a__b__c", True),
        ("a*b*c", "abc", True),
        ("a*bc*c", "abc", False),
        ("a.txt", "a.txt2", False),
        ("(x)", "(x)", True),
    ],
)
async def test_a_star_matches_any_characters(pattern: str, path: str, matches: bool) -> None:
    assert (await action(Policy(deny=[f"read_file({pattern})"]), READ, path) == "deny") is matches


@given(st.lists(st.sampled_from(["a", "b", "*", "/"]), max_size=12).map("".join), st.text("ab/", max_size=12))
def test_the_wildcard_agrees_with_a_regular_expression(pattern: str, path: str) -> None:
    import re

    stripped = pattern.removeprefix("./")
    spellings = [stripped, stripped[3:]] if stripped.startswith("**/") else [stripped]
    expected = any(
        re.fullmatch(".*".join(map(re.escape, spelling.split("*"))), subject, re.DOTALL)
        for spelling in spellings
        for subject in (path, path if path.startswith("/") else f"/w/{path}")
    )
    decision = asyncio.run(Policy(deny=[f"read_file({pattern})"]).decide(READ, {"path": path}))
    assert (decision.action == "deny") is expected


async def test_a_deny_that_cannot_be_evaluated_asks_even_in_bypass() -> None:
    for tool, value, rule in (
        (custom, "", "custom(x*)"),
        (READ, "broken", "read_file(secret)"),
        (SHELL, "$X -rf /", "shell(rm *)"),
        (SHELL, "sh -c 'rm x'", "shell(rm *)"),
    ):
        decision = await Policy(deny=[rule], mode="bypass").decide(
            tool, {"command": value} if tool is SHELL else {"path": value}
        )
        assert decision.action == "ask"
        assert "cannot be evaluated" in decision.reason
    assert (await Policy(deny=["read_file(x)"]).decide(READ, "not an object")).action == "ask"
    assert (await Policy().decide(READ, "not an object")).action == "allow"


async def test_every_simple_command_must_match_an_allow() -> None:
    policy = Policy(allow=["shell(git *)", "shell(pytest*)"])
    for command in ("git add .", "git add . && pytest -q", "pytest 2>&1 | git hash-object --stdin", "pytest -k 'a b';"):
        assert await action(policy, SHELL, command) == "allow", command
    for command in ("git add . && rm x", "pytest; curl x", "pytest | sh", "git add . &&& x", "", "pytest & reboot"):
        assert await action(policy, SHELL, command) == "ask", command


HIDDEN_RM = [
    "env rm -rf x",
    "/usr/bin/env rm x",
    "xargs rm",
    "echo x | xargs rm",
    "sh -c 'rm x'",
    "bash -c rm",
    "$(echo rm) x",
    "`echo rm` x",
    "$RM x",
    "${RM} x",
    "git status $(rm x)",
    'git status "$(rm x)"',
    "git status `rm x`",
    "git log ${x:=`rm x`}",
    "git() { rm x; }; git status",
    "function git { rm x; }; git status",
    "PATH=. git status",
    "git status > /etc/passwd",
    "git status >> x",
    "git status < x",
    "git status <(rm x)",
    "git status\nrm x",
    "git status\rrm x",
    "eval git status",
    "exec git status",
    "command git status",
    ". git status",
    "nohup git status",
    "sudo git status",
    "timeout 5 git status",
    "if true; then git status; fi",
    "! git status",
    "{ git status; }",
    "(git status)",
    "git status #; rm x",
    "g?t status",
    "~/git status",
    "{git,rm} x",
    "git status; $'rm' x",
    'git status "unclosed',
    "cat <<EOF\nx\nEOF",
    "coproc git status",
    "[[ -n x ]] && git status",
]


@pytest.mark.parametrize("command", HIDDEN_RM)
async def test_what_cannot_be_split_with_certainty_is_never_allowed_by_rules_for_its_words(command: str) -> None:
    policy = Policy(allow=["shell(git *)", "shell(rm *)", "shell(*git status*)", "shell(echo *)", "shell(*)"])
    assert await action(policy, SHELL, command) == "ask"


@pytest.mark.parametrize(
    "command", ["rm -rf x", "ls; rm x", "ls && /bin/rm x", "r\\m x", "'rm' x", "a | rm x", "rm\tx"]
)
async def test_a_deny_holds_for_every_part_and_spelling_of_a_command(command: str) -> None:
    assert await action(Policy(deny=["shell(rm *)"], mode="bypass"), SHELL, command) == "deny"


WORD = st.text("ab-./'\" $;&|<>(){}`\\#=~*\n", min_size=1, max_size=8)


@given(st.lists(st.one_of(WORD, WORD.map(shlex.quote), st.sampled_from(["&&", ";", "|", ">", "2>&1"])), max_size=6))
def test_a_certain_split_agrees_with_what_bash_runs(parts: list[str]) -> None:
    """The oracle is bash itself: every command it would start is a command that the split names."""
    command = " ".join(parts)
    split = split_command(command)
    if split.uncertain or any("*" in word or "~" in word for words in split.commands for word in words):
        return
    # command_not_found_handle sees each program's name; nothing of these names exists, so nothing is run.
    script = 'PATH=/nowhere; command_not_found_handle() { printf "%s\\0" "$1" >&3; return 0; }\n' + command
    ran = subprocess.run(["bash", "-c", f"exec 3>&1 >/dev/null 2>&1\n{script}"], capture_output=True, check=False)
    started = {name.decode() for name in ran.stdout.split(b"\0") if name}
    assert started <= {words[0] for words in split.commands}


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".vscode/tasks.json", ".mcp.json"])
async def test_a_write_to_a_trust_input_asks_in_every_mode_but_bypass(path: str) -> None:
    for mode in ("default", "accept_edits"):
        assert await action(Policy(allow=["write_file"], mode=mode), WRITE, path) == "ask"
    assert await action(Policy(mode="plan"), WRITE, path) == "deny"
    assert await action(Policy(mode="plan", allow=["write_file"]), WRITE, path) == "ask"
    assert await action(Policy(mode="bypass"), WRITE, path) == "allow"
    assert await action(Policy(deny=["write_file"]), WRITE, path) == "deny"
    assert await action(Policy(), READ, path) == "allow"


async def test_auto_approve_answers_for_commands_that_would_be_asked_about() -> None:
    async def later(command: str) -> bool:
        return command == "ls"

    def now(command: str) -> bool:
        return command == "ls"

    for approve in (now, later):
        policy = Policy(auto_approve=approve, deny=["shell(rm *)"])
        assert await action(policy, SHELL, "ls") == "allow"
        assert await action(policy, SHELL, "id") == "ask"
        assert await action(policy, SHELL, "rm x") == "deny"
        assert await action(Policy(auto_approve=approve, ask=["shell"]), SHELL, "ls") == "ask"
        assert await action(Policy(auto_approve=approve, mode="plan"), SHELL, "ls") == "deny"


def test_what_is_no_rule_is_refused_when_the_policy_is_made() -> None:
    for text in ("", "shell(", "shell)x", "two words", "shell(a) b"):
        with pytest.raises(ValueError, match="is no rule"):
            Policy(allow=[text])
    with pytest.raises(ValueError, match="is no mode"):
        Policy(mode="yolo")  # pyright: ignore[reportArgumentType]  (the point of the test)
    with pytest.raises(TypeError, match="list of strings"):
        Policy(allow="shell")


async def test_a_decision_names_the_subject_that_was_judged() -> None:
    assert (await Policy().decide(READ, {"path": "a.txt"})).subject == "a.txt"
    assert (await Policy().decide(custom, {})).subject == ""


def test_a_leading_double_star_also_matches_nothing_and_a_bare_rule_everything() -> None:
    rule = Rule.of("write_file(**/.env)")
    assert rule.matches(".env")
    assert rule.matches("a/b/.env")
    assert not rule.matches("a.env")
    assert Rule.of("write_file(./**/.env)").matches(".env")
    assert Rule.of("write_file").matches("anything")


@pytest.mark.parametrize("command", ["ls ';' rm", 'ls "&&" rm', "ls \\; rm", "ls \\&", "ls \\"])
def test_an_operator_that_quotes_or_a_backslash_make_a_word_is_uncertain(command: str) -> None:
    assert split_command(command).uncertain


def test_what_a_backslash_makes_plain_is_a_word() -> None:
    assert split_command("ls a\\ b").commands == (("ls", "a b"),)
    assert split_command("ls 'x;y'").commands == (("ls", "x;y"),)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo `id`", "substitutes a command"),
        ('echo "`id`"', "substitutes a command"),
        ("(ls)", "group or a function"),
        ("f() { ls; }", "group or a function"),
        ("ls # x", "comment"),
        ("# x", "comment"),
        ("ls >x", "redirects"),
    ],
)
def test_the_reason_for_no_certain_answer_is_the_real_one(command: str, why: str) -> None:
    assert why in split_command(command).uncertain


@pytest.mark.parametrize("command", [">/dev/null ls", "2>/dev/null ls", "ls 2>&1"])
def test_a_harmless_redirection_is_one_at_the_start_too(command: str) -> None:
    assert split_command(command).commands == (("ls",),)


@pytest.mark.parametrize(
    "url",
    [
        "http://evil.com/",
        "http://EVIL.com/",
        "http://ev%69l.com/",
        "http://evil\u3002com/",
        "http://\uff45vil.com/",
        "http://ev\til.com/",
        " http://evil.com.",
    ],
)
async def test_a_deny_holds_for_every_spelling_of_a_host(url: str) -> None:
    assert await action(Policy(deny=["web_fetch(*evil.com*)"], mode="bypass"), FETCH, url) == "deny"
    assert await action(Policy(allow=["web_fetch(http://evil.com/*)"]), FETCH, "http://EVIL.com/") == "ask"


@pytest.mark.parametrize(
    ("rules", "tool", "value", "says"),
    [
        ({"ask": ["read_file(secret*)"]}, READ, "a.txt", "allow"),
        ({"ask": ["read_file(secret*)"]}, READ, "secret.txt", "ask"),
        ({"allow": ["write_file"]}, WRITE, "a.txt", "allow"),
        ({"allow": ["write_file(src/*)"]}, WRITE, "src/a.txt", "allow"),
        ({"allow": ["write_file(src/*)"]}, WRITE, "docs/a.txt", "ask"),
        ({"allow": ["shell(echo *)"]}, SHELL, "echo $HOME", "allow"),
        ({"allow": ["shell(echo *)"]}, SHELL, "echo ${x:-$(id)}", "ask"),
        ({"allow": ["shell(echo *)"]}, SHELL, 'echo "a;b"', "allow"),
        ({"allow": ["shell(echo *)"]}, SHELL, 'echo "a"; rm -rf x', "ask"),
        ({"allow": ["shell(echo *)"]}, SHELL, "echo \"it's\" ; rm -rf x '", "ask"),
        ({"allow": ["shell(echo a@b)"]}, SHELL, "echo a@b", "allow"),
        ({"allow": ["shell(echo *)"]}, SHELL, 'echo "open', "ask"),
        ({"allow": ["shell(echo *)"]}, SHELL, "echo a ;; echo b", "ask"),
        ({"allow": ["read_file(ab*ba)"], "mode": "plan"}, READ, "aba", "allow"),
        ({"deny": ["read_file(ab*ba)"]}, READ, "aba", "allow"),
        ({"deny": ["read_file(ab*ba)"]}, READ, "abba", "deny"),
    ],
)
async def test_a_rule_holds_for_what_it_matches_and_for_nothing_else(
    rules: dict[str, Any], tool: Tool[Any], value: str, says: str
) -> None:
    assert await action(Policy(**rules), tool, value) == says


@pytest.mark.parametrize(
    ("policy", "tool", "value", "why"),
    [
        (Policy(), READ, "a.txt", "it reads only"),
        (Policy(), NOTE, "a.txt", "it is a plain write"),
        (Policy(deny=["custom(x*)"]), custom, "", "cannot be evaluated: custom names no subject"),
        (Policy(deny=["read_file(x*)"]), READ, "broken", "the call cannot be judged (no such place)"),
        (
            Policy(deny=["shell(rm *)"]),
            SHELL,
            'echo "open',
            "with certainty: a quotation is not closed",
        ),
        (Policy(deny=["shell(rm *)"]), SHELL, "echo $(id)", "something ($)"),
    ],
)
async def test_a_decision_says_why(policy: Policy, tool: Tool[Any], value: str, why: str) -> None:
    arguments = {"command": value} if tool.kind == "shell" else {"path": value} if tool.kind != "custom" else {}
    assert why in (await policy.decide(tool, arguments)).reason


@pytest.mark.parametrize("effects", [Effects(writes=True, network=True), Effects(writes=True, executes=True)])
async def test_accept_edits_lets_through_no_write_that_does_more(effects: Effects) -> None:
    assert await action(Policy(mode="accept_edits"), path_tool("write_file", effects, writes=written)) == "ask"
