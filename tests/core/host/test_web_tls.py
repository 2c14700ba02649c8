"""TLS: the name is checked, the authority is known, nothing falls back."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.core.host.certificates import Authority
from tests.core.host.web_servers import Net, Server, answer, by_path, descriptors_settle_at, fixed, open_descriptors
from toolkit_core.host.web import HostWeb
from toolkit_core.tools import web_fetch_tool


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture(scope="module")
def certificate(authority: Authority) -> ssl.SSLContext:
    return authority.server("pub.test")


async def test_reads_over_tls_whose_certificate_fits(authority: Authority, certificate: ssl.SSLContext) -> None:
    async with Server(fixed(answer(b"over tls" * 50_000)), certificate).running() as server:
        net = Net(server.port)
        before = open_descriptors()
        result = await web_fetch_tool(HostWeb(egress=net.egress(), tls=authority.client()))(url="https://pub.test/a")
        assert "over tls" in result.text
        assert await descriptors_settle_at(before)
    assert net.dialled == [("93.184.216.34", 443)]
    assert b"Host: pub.test\r\n" in server.heads[0]


async def test_a_certificate_for_another_name_is_a_network_error_that_says_so(
    authority: Authority, certificate: ssl.SSLContext
) -> None:
    async with Server(fixed(answer(b"secret")), certificate).running() as server:
        web = HostWeb(egress=Net(server.port).egress(), tls=authority.client())
        before = open_descriptors()
        result = await web_fetch_tool(web)(url="https://other.test/")
        assert await descriptors_settle_at(before)
    assert result.error is not None
    assert result.error.code == "network_error"
    assert "certificate" in result.text
    assert "other.test" in result.text
    assert server.heads == []


async def test_an_unknown_authority_is_a_network_error_that_says_so(
    certificate: ssl.SSLContext, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "stranger")
    async with Server(fixed(answer(b"secret")), certificate).running() as server:
        for tls in (stranger.client(), None):
            result = await web_fetch_tool(HostWeb(egress=Net(server.port).egress(), tls=tls))(url="https://pub.test/")
            assert result.error is not None
            assert result.error.code == "network_error"
            assert "certificate" in result.text
    assert server.heads == []


async def test_plain_http_behind_an_https_address_is_a_network_error() -> None:
    async with Server(fixed(answer(b"plain"))).running() as server:
        result = await web_fetch_tool(HostWeb(egress=Net(server.port).egress()), timeout_seconds=1)(
            url="https://pub.test/"
        )
    assert result.error is not None
    assert result.error.code in ("network_error", "timed_out")


async def test_https_is_not_left_for_http(authority: Authority, certificate: ssl.SSLContext) -> None:
    pages = by_path({"/": answer(status="301 Moved", headers=["Location: http://pub.test/plain"])})
    async with Server(pages, certificate).running() as server:
        web = HostWeb(egress=Net(server.port).egress(), tls=authority.client())
        result = await web_fetch_tool(web)(url="https://pub.test/")
    assert result.error is not None
    assert result.error.code == "refused_url"
    assert "https to http" in result.text
    assert len(server.heads) == 1


async def test_http_may_be_left_for_https(authority: Authority, certificate: ssl.SSLContext) -> None:
    async with (
        Server(fixed(answer(b"safe")), certificate).running() as secure,
        Server(fixed(answer(status="301 Moved", headers=["Location: https://pub.test/"]))).running() as plain,
    ):
        ports = {80: plain.port, 443: secure.port}
        net = Net(0)

        async def dial(address: str, port: int) -> object:
            net.port = ports[port]
            return await net.dial(address, port)

        egress = type(net.egress())(resolver=net.resolve, dial=dial)  # pyright: ignore[reportArgumentType]
        result = await web_fetch_tool(HostWeb(egress=egress, tls=authority.client()))(url="http://pub.test/")
    assert "safe" in result.text
    assert result.data is not None
    assert result.data["final_url"] == "https://pub.test/"
