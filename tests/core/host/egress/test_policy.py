"""The policy as a program sets it up, the addresses it judges, how it connects."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.host.web_servers import Net, Server, answer, fixed
from toolkit_core import ToolError
from toolkit_core.host.bridge import run_blocking
from toolkit_core.host.egress import Connection, Egress, SystemResolver, Target
from toolkit_core.host.egress import policy as policy_module
from toolkit_core.host.egress.addresses import refusal
from toolkit_core.host.egress.policy import dial_directly
from toolkit_core.host.web import HostWeb
from toolkit_core.tools import web_fetch_tool


def refused(egress: Egress, url: str) -> bool:
    return read(lambda: egress.screen(url)) is None


def read(look: Callable[[], Target]) -> Target | None:
    """What was read, None where it was refused; nothing else may come of it."""
    try:
        return look()
    except ToolError as e:
        code = e.code
    assert code == "refused_url"
    return None


@pytest.mark.parametrize(
    ("edge", "inside"),
    [
        ("172.15.255.255", False),
        ("172.16.0.0", True),
        ("172.31.255.255", True),
        ("172.32.0.0", False),
        ("100.63.255.255", False),
        ("100.64.0.0", True),
        ("100.127.255.255", True),
        ("100.128.0.0", False),
        ("9.255.255.255", False),
        ("11.0.0.0", False),
        ("126.255.255.255", False),
        ("128.0.0.0", False),
        ("192.167.255.255", False),
        ("192.169.0.0", False),
        ("198.17.255.255", False),
        ("198.20.0.0", False),
        ("223.255.255.255", False),
        ("224.0.0.0", True),
        ("168.63.129.15", False),
        ("168.63.129.17", False),
        ("2001:1ff:ffff::", True),
        ("2001:200::", False),
        ("2001:4860:4860::8888", False),
        ("2606:4700::1111", False),
        ("1fff:ffff::", True),
        ("4000::", True),
    ],
)
def test_the_edges_of_the_refused_networks(edge: str, inside: bool) -> None:
    assert (refusal(ip_address(edge)) is not None) is inside


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_and_its_embedded_forms_are_judged_alike(address: IPv4Address) -> None:
    reason = refusal(address)
    assert refusal(IPv6Address(f"::ffff:{address}")) == reason
    assert refusal(IPv6Address(f"64:ff9b::{address}")) == reason
    if not address.is_global:
        assert reason is not None, "what Python calls not global is refused"


@given(st.ip_addresses(v=6))
def test_an_ipv6_address_that_python_calls_not_global_is_refused(address: IPv6Address) -> None:
    if not address.is_global and address.ipv4_mapped is None:
        assert refusal(address) is not None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    for url in (text, f"http://{text}", f"https://{text}/", f"http://pub.test/{text}"):
        target = read(lambda url=url: Egress().screen(url))
        if target is not None:
            assert target.url.isascii()
            assert target.host == target.host.lower()
            assert not any(c in target.url for c in " \r\n\t\\")
            assert Egress().screen(target.url) == target, "reading is stable"


@given(st.text(max_size=60))
def test_any_location_is_read_or_refused_in_words(text: str) -> None:
    base = Egress().screen("https://pub.test/a/b?c")
    target = read(lambda: Egress().screen_redirect(base, text))
    assert target is None or target.scheme == "https"


def test_only_allowed_domains_are_reached_with_what_is_below_them() -> None:
    egress = Egress(allow_domains=["docs.test", "*.wild.test"])
    assert not refused(egress, "https://docs.test/")
    assert not refused(egress, "https://deep.docs.test/")
    assert not refused(egress, "https://a.wild.test/")
    assert refused(egress, "https://wild.test/")
    assert refused(egress, "https://evildocs.test/")
    assert refused(egress, "https://docs.test.evil.test/")
    assert refused(egress, "http://8.8.8.8/")


def test_blocked_domains_win_over_allowed_ones() -> None:
    egress = Egress(allow_domains=["docs.test"], block_domains=["internal.docs.test"])
    assert not refused(egress, "https://docs.test/")
    assert refused(egress, "https://internal.docs.test/")
    assert refused(egress, "https://x.INTERNAL.docs.test./")


def test_an_allowed_domain_that_is_international_is_compared_in_its_ascii_form() -> None:
    egress = Egress(allow_domains=["bücher.test"])
    assert not refused(egress, "https://xn--bcher-kva.test/")
    assert not refused(egress, "https://bücher.test/")


def test_private_hosts_and_networks_are_reached_when_the_program_says_so() -> None:
    egress = Egress(allow_private=["127.0.0.0/8", "10.1.2.3", "[::1]", "wiki.internal", "localhost"])
    for url in (
        "http://127.0.0.1:8080/",
        "http://10.1.2.3/",
        "http://[::1]/",
        "http://localhost/",
        "http://[::ffff:7f00:1]/",
    ):
        assert not refused(egress, url), url
    for url in ("http://10.1.2.4/", "http://169.254.169.254/", "http://other.internal/", "http://intranet/"):
        assert refused(egress, url), url


async def test_a_private_network_that_is_allowed_still_judges_every_answer() -> None:
    net = Net(1, {"wiki.test": [["10.0.0.5", "192.168.0.1"]]})
    with pytest.raises(ToolError) as refusal_:
        await net.egress(allow_private=["10.0.0.0/8"]).connect("wiki.test", 80)
    assert refusal_.value.code == "refused_url"
    assert net.dialled == []


@pytest.mark.parametrize("entry", ["http://docs.test/", "a b", "", "127.0.0.1/33", "docs.test:80"])
def test_an_entry_that_is_no_host_raises_when_the_policy_is_built(entry: str) -> None:
    with pytest.raises(ValueError, match="host name"):
        Egress(block_domains=[entry])
    with pytest.raises(ValueError, match="host name"):
        Egress(allow_private=[entry])


def test_one_string_instead_of_a_list_raises() -> None:
    with pytest.raises(ValueError, match="list"):
        Egress(allow_domains="docs.test")


async def test_a_real_private_server_is_reached_only_when_allowed() -> None:
    async with Server(fixed(answer(b"local service", content_type="text/plain"))).running() as server:
        url = f"http://127.0.0.1:{server.port}/"
        closed = await web_fetch_tool(HostWeb())(url=url)
        opened = await web_fetch_tool(HostWeb(egress=Egress(allow_private=["127.0.0.1"])))(url=url)
    assert closed.error is not None
    assert closed.error.code == "refused_url"
    assert "local service" in opened.text


async def test_another_address_is_tried_where_one_refuses_or_lets_wait() -> None:
    async with Server(fixed(answer(b"from the third", content_type="text/plain"))).running() as server:
        dialled: list[str] = []

        async def dial(address: str, port: int) -> Connection:
            dialled.append(address)
            if address == "8.8.8.1":
                raise ConnectionRefusedError(111, "Connection refused")
            if address == "8.8.8.2":
                await asyncio.sleep(60)
            return await asyncio.open_connection("127.0.0.1", server.port)

        async def resolve(host: str) -> list[str]:
            return ["8.8.8.1", "8.8.8.2", "8.8.8.3"]

        result = await web_fetch_tool(HostWeb(egress=Egress(resolver=resolve, dial=dial)))(url="http://pub.test/")
    assert "from the third" in result.text
    assert dialled == ["8.8.8.1", "8.8.8.2", "8.8.8.3"]


async def test_the_direct_dial_connects_to_an_address_and_never_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Server(fixed(answer(b"here", content_type="text/plain"))).running() as server:

        def forbidden(host: object, *rest: object, **options: object) -> object:
            raise AssertionError(f"looked up {host}")

        loop = asyncio.get_running_loop()
        monkeypatch.setattr(socket, "getaddrinfo", forbidden)
        assert loop is not None
        egress = Egress(allow_private=["127.0.0.1"])
        result = await web_fetch_tool(HostWeb(egress=egress))(url=f"http://127.0.0.1:{server.port}/")
    assert "here" in result.text


async def test_the_system_resolver_answers_and_says_what_it_cannot() -> None:
    assert "127.0.0.1" in await SystemResolver()("localhost")
    with pytest.raises(OSError, match=r"."):
        await SystemResolver()("no-such-name.invalid")


async def test_a_look_up_that_hangs_holds_one_thread_of_a_bounded_number(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        release.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    resolver = SystemResolver(max_threads=2)
    started = time.monotonic()
    calls = [asyncio.ensure_future(resolver("slow.test")) for _ in range(5)]
    await asyncio.sleep(0.1)
    threads = [thread for thread in threading.enumerate() if thread.name == "toolkit-resolver"]
    assert len(threads) == 2
    assert all(thread.daemon for thread in threads), "they must not hold up the interpreter's exit"
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert time.monotonic() - started < 5
    release.set()
    for thread in threads:
        thread.join(5)
    assert await resolver("fast.test") == ()


def test_the_same_policy_works_on_several_event_loops() -> None:
    async def once() -> str:
        async with Server(fixed(answer(b"again", content_type="text/plain"))).running() as server:
            net.port = server.port
            return (await tool(url="http://pub.test/")).text

    net = Net(0)
    tool = web_fetch_tool(HostWeb(egress=net.egress()))
    assert "again" in asyncio.run(once())
    assert "again" in asyncio.run(once())


async def test_a_resolver_may_answer_at_once() -> None:
    async with Server(fixed(answer(b"here", content_type="text/plain"))).running() as server:
        egress = Egress(resolver=lambda host: ["8.8.8.8"], dial=Net(server.port).dial)
        assert "here" in (await web_fetch_tool(HostWeb(egress=egress))(url="http://pub.test/")).text


def test_it_works_from_the_blocking_bridge_too() -> None:
    """A page that is converted in a child process, on a loop that is not the main thread's."""
    page = answer(b"<title>T</title><p>large</p><!--" + b"x" * 300_000 + b"-->")

    async def once() -> str:
        async with Server(fixed(page)).running() as server:
            tool = web_fetch_tool(HostWeb(egress=Net(server.port).egress()))
            return (await tool(url="http://pub.test/")).text

    assert run_blocking(once()).endswith("# T\n\nlarge")


BASE = Egress().screen("https://a.test/x")


@pytest.mark.parametrize("location", ["///b.test/", "////b.test", " ///b.test"])
def test_a_redirect_of_three_slashes_names_its_danger(location: str) -> None:
    with pytest.raises(ToolError, match="three slashes"):
        Egress().screen_redirect(BASE, location)


def test_a_name_as_long_as_the_dns_takes_is_taken_and_no_longer() -> None:
    longest = ".".join(["a" * 63] * 3 + ["b" * 61])
    assert len(longest) == 253
    assert not refused(Egress(), f"https://{longest}/")
    assert refused(Egress(), f"https://{longest}b/")


def test_an_international_name_must_be_right_in_every_label() -> None:
    assert Egress().screen("https://b\u00fccher.test/").host == "xn--bcher-kva.test"
    assert refused(Egress(), "https://b\u00fccher..test/")


def test_a_policy_with_one_more_host_keeps_all_else() -> None:
    egress = Egress(allow_domains=["a.test"], block_domains=["b.test"]).with_private("search.local")
    assert not refused(egress, "http://search.local/")
    assert not refused(egress, "http://a.test/")
    assert refused(egress, "http://b.test/")
    assert refused(egress, "http://c.test/")
    assert refused(egress, "http://other.local/")


async def test_what_a_dialer_raises_that_is_no_refusal_of_the_system_comes_through() -> None:
    async def dial(address: str, port: int) -> Connection:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        await Egress(resolver=lambda _: ["93.184.216.34"], dial=dial).connect("a.test", 80)


async def test_a_server_that_does_not_answer_is_worth_another_try() -> None:
    async def dial(address: str, port: int) -> Connection:
        raise ConnectionRefusedError(111, "refused")

    with pytest.raises(ToolError) as failed:
        await Egress(resolver=lambda _: ["93.184.216.34"], dial=dial).connect("a.test", 80)
    assert failed.value.code == "network_error"
    assert failed.value.retryable


async def test_a_connection_that_is_made_too_late_is_closed() -> None:
    late = asyncio.Event()

    class Writer:
        """A stream whose end is seen."""

        def __init__(self) -> None:
            self.transport, self.aborted = self, False

        def abort(self) -> None:
            self.aborted = True

    slow, quick = Writer(), Writer()

    async def dial(address: str, port: int) -> Any:
        if address == "93.184.216.34":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                late.set()
            return None, slow
        return None, quick

    egress = Egress(resolver=lambda _: ["93.184.216.34", "93.184.216.35"], dial=dial)
    _, writer = await egress.connect("a.test", 80)
    await asyncio.sleep(0)
    assert late.is_set()
    assert writer is quick
    assert slow.aborted
    assert not quick.aborted


def test_user_names_long_ports_and_underscores() -> None:
    with pytest.raises(ToolError, match="user name or password"):
        Egress().screen("https://user@a.test/")
    assert refused(Egress(), "https://a.test:000443/")
    assert Egress().screen("https://a_b.test:00443/").host == "a_b.test"


async def test_a_name_that_does_not_resolve_is_an_error_of_the_network() -> None:
    def resolver(host: str) -> list[str]:
        raise OSError(-2, "Name or service not known")

    with pytest.raises(ToolError, match=r"a\.test does not resolve \(Name or service") as failed:
        await Egress(resolver=resolver).connect("a.test", 80)
    assert failed.value.code == "network_error"


@pytest.mark.parametrize(
    ("settings", "host", "port", "why"),
    [
        ({}, "example.com", 25, "port 25"),
        ({"block_domains": ["example.com"]}, "example.com", 443, "blocked"),
        ({"allow_domains": ["other.com"]}, "example.com", 443, "not among the hosts"),
        ({}, "printer.local", 443, "local network"),
    ],
)
def test_a_host_without_a_url_is_judged_as_strictly(settings: dict[str, Any], host: str, port: int, why: str) -> None:
    with pytest.raises(ToolError, match=why) as caught:
        Egress(**settings).screen_host(host, port)
    assert caught.value.code == "refused_url"


async def test_a_connection_that_arrives_elsewhere_is_closed_and_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    aborted: list[bool] = []

    class Writer:
        def __init__(self, peer: str | None) -> None:
            self.peer, self.transport = peer, self

        def get_extra_info(self, name: str, default: Any) -> Any:
            return default if self.peer is None else (self.peer, 80)

        def abort(self) -> None:
            aborted.append(True)

    async def arrive(peer: str | None) -> Connection:
        async def opened(*_: Any, **__: Any) -> Any:
            return asyncio.StreamReader(), Writer(peer)

        monkeypatch.setattr(asyncio, "open_connection", opened)
        return await dial_directly("93.184.216.34", 80)

    await arrive("93.184.216.34")
    assert not aborted
    for peer in ("10.0.0.1", "no address", None):
        with pytest.raises(ToolError, match="arrived elsewhere") as caught:
            await arrive(peer)
        assert caught.value.code == "refused_url"
    assert len(aborted) == 3


async def test_a_connection_that_comes_after_the_first_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(policy_module, "WEB_CONNECT_STAGGER_SECONDS", 0.01)

    class Writer:
        def __init__(self, address: str) -> None:
            self.address, self.transport = address, self

        def abort(self) -> None:
            closed.append(self.address)

    async def dial(address: str, port: int) -> Any:
        try:
            await asyncio.sleep(30 if address.endswith("1") else 0.05)
        except asyncio.CancelledError:
            if address.endswith("1"):  # its connection stood already
                return asyncio.StreamReader(), Writer(address)
            raise
        return asyncio.StreamReader(), Writer(address)

    egress = Egress(resolver=lambda _: ["93.184.216.31", "93.184.216.32"], dial=dial)
    _, writer = await egress.connect("example.com", 443)
    assert writer.address == "93.184.216.32"  # type: ignore[attr-defined]
    await asyncio.sleep(0)
    assert closed == ["93.184.216.31"]


@pytest.mark.parametrize("answer", ["fe80::1%eth0", "2606:4700::1111%1"])
async def test_an_answer_with_a_zone_is_no_address_to_connect_to(answer: str) -> None:
    with pytest.raises(ToolError, match="not a plain address"):
        await Egress(resolver=lambda _: [answer]).connect("example.com", 443)


def test_a_network_may_be_given_by_any_address_in_it() -> None:
    assert not refused(Egress(allow_private=["10.1.2.3/8"]), "http://10.9.9.9/")
    assert refused(Egress(allow_private=["10.1.2.3/8"]), "http://192.168.1.1/")
