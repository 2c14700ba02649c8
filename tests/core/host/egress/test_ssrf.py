"""Every address of the list through the tool, against a real server behind the guarded path."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address

import pytest

from tests.core.host.egress.cases import CASES, PUBLIC, Case
from tests.core.host.web_servers import Net, Respond, Server, answer, fixed
from toolkit_core.host.egress import Egress
from toolkit_core.host.web import HostWeb
from toolkit_core.tools import web_fetch_tool


def _serving(case: Case) -> Respond:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        first = head.startswith(b"GET / HTTP") and b"Host: example.com\r\n" in head
        if case.redirect is not None and first:
            writer.write(answer(status="302 Found", headers=[f"Location: {case.redirect}"]))
        else:
            writer.write(answer(b"the page", content_type="text/plain"))

    return respond


@pytest.mark.parametrize("case", CASES, ids=lambda case: ascii(f"{case.url[:60]}>{case.redirect or ''}"))
async def test_an_address_gives_a_page_only_where_it_may(case: Case) -> None:
    async with Server(_serving(case)).running() as server:
        host = case.url.partition("://")[2].partition("/")[0]
        rounds = [case.answers, *([case.then] if case.then else [])]
        net = Net(server.port)
        looked_up: list[str] = []

        async def resolve(name: str) -> tuple[str, ...]:
            looked_up.append(name)
            if name == "example.org":
                return case.redirect_answers
            return rounds[min(looked_up.count(name), len(rounds)) - 1]

        tool = web_fetch_tool(HostWeb(egress=Egress(resolver=resolve, dial=net.dial)), timeout_seconds=15)
        result = await tool(url=case.url)

    allowed_hops = 1 if case.redirect is not None and not case.allowed else 0
    if case.allowed:
        assert not result.is_error, result.text
        assert "the page" in result.text
        judged = {ip_address(text) for text in (*case.answers, *case.redirect_answers)} or {
            ip_address(host.strip("[]"))
        }
        assert {ip_address(address) for address, _ in net.dialled} <= judged
    else:
        assert result.error is not None
        assert result.error.code == "refused_url", result.text
        assert len(net.dialled) == len(server.heads) == allowed_hops, "nothing may be sent to a refused address"


async def test_control_python_resolves_the_odd_spellings_to_loopback() -> None:
    for spelling in ("127.1", "2130706433", "0x7f.0.0.1", "0177.0.0.1"):
        assert socket.getaddrinfo(spelling, 80, type=socket.SOCK_STREAM)[0][4][0] == "127.0.0.1"


async def test_a_second_answer_of_the_resolver_is_never_used() -> None:
    """Rebinding: the name is public when it is judged and private a moment later."""
    async with Server(fixed(answer(b"public page", content_type="text/plain"))).running() as server:
        net = Net(server.port, {"rebind.test": [[PUBLIC], ["127.0.0.1"]]})
        tool = web_fetch_tool(HostWeb(egress=net.egress()))
        first = await tool(url="http://rebind.test/")
        second = await tool(url="http://rebind.test/")

    assert "public page" in first.text
    assert net.dialled == [(PUBLIC, 80)], "one look-up a connection, to the very address that was judged"
    assert second.error is not None
    assert second.error.code == "refused_url"
    assert net.looked_up == ["rebind.test"] * 2


async def test_control_a_fetch_that_resolves_twice_reaches_the_second_answer() -> None:
    """The danger is real: judge one look-up, connect by another, and the private server answers."""
    async with Server(fixed(answer(b"private page"))).running() as server:
        answers = [[PUBLIC], ["127.0.0.1"]]
        judged = answers.pop(0)
        connected = answers.pop(0)
        assert judged == [PUBLIC]
        reader, writer = await asyncio.open_connection(connected[0], server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: rebind.test\r\n\r\n")
        assert b"private page" in await reader.read()
        writer.close()


async def test_a_redirect_to_a_name_that_has_become_private_is_refused() -> None:
    async with Server(fixed(answer(status="302 Found", headers=["Location: /again"]))).running() as server:
        net = Net(server.port, {"rebind.test": [[PUBLIC], ["169.254.169.254"]]})
        result = await web_fetch_tool(HostWeb(egress=net.egress()))(url="http://rebind.test/")
    assert result.error is not None
    assert result.error.code == "refused_url"
    assert "169.254.169.254" in result.text
    assert len(server.heads) == 1


async def test_a_redirect_carries_no_cookie_and_no_credential_over() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"GET / " in head:
            to = "Location: http://other.test/next"
            writer.write(answer(status="302 Found", headers=["Set-Cookie: session=secret; Path=/", to]))
        else:
            writer.write(answer(b"ok"))

    async with Server(respond).running() as server:
        result = await web_fetch_tool(HostWeb(egress=Net(server.port).egress()))(url="http://pub.test/")
    assert not result.is_error
    sent = server.heads[1].lower()
    assert b"host: other.test\r\n" in sent
    assert b"cookie" not in sent
    assert b"authorization" not in sent
    assert b"referer" not in sent


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_not_used(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        Server(fixed(answer(b"direct"))).running() as server,
        Server(fixed(answer(b"through the proxy"))).running() as proxy,
    ):
        monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        result = await web_fetch_tool(HostWeb(egress=Net(server.port).egress()))(url="http://pub.test/")
    assert "direct" in result.text
    assert proxy.heads == []
