"""Search services against local servers that answer as theirs do, and badly."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import ssl
import traceback
from collections.abc import Callable
from urllib.parse import parse_qs

import pytest

from tests.core.host.certificates import Authority
from tests.core.host.web_servers import Net, Respond, Server, answer, fixed
from toolkit_core import ToolError, ToolResult
from toolkit_core.host.egress import Egress
from toolkit_core.host.search_providers import brave, duckduckgo, searxng, tavily
from toolkit_core.ports.web_search import WebSearchProvider
from toolkit_core.tools import web_search_tool

KEY = "sk-secret-key-9f8e7d"

Provider = Callable[[Egress, ssl.SSLContext], WebSearchProvider]
PROVIDERS: dict[str, Provider] = {
    "api.search.brave.com": lambda egress, tls: brave(KEY, egress=egress, tls=tls),
    "api.tavily.com": lambda egress, tls: tavily(KEY, egress=egress, tls=tls),
    "html.duckduckgo.com": lambda egress, tls: duckduckgo(egress=egress, tls=tls),
    "searx.test": lambda egress, tls: searxng("https://searx.test/", egress=egress, tls=tls),
}

KEYED = ("api.search.brave.com", "api.tavily.com")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture(scope="module")
def certificates(authority: Authority) -> dict[str, ssl.SSLContext]:
    return {host: authority.server(host) for host in PROVIDERS}


class Service:
    """Starts a service's double and asks it through the tool."""

    def __init__(self, authority: Authority, certificates: dict[str, ssl.SSLContext]) -> None:
        self._authority, self._certificates = authority, certificates
        self.bodies: list[bytes] = []
        self.heads: list[bytes] = []

    async def ask(self, host: str, raw: bytes | Respond, query: str = "what is it?", limit: int = 5) -> ToolResult:
        server = Server(fixed(raw) if isinstance(raw, bytes) else raw, self._certificates[host])
        async with server.running():
            provider = PROVIDERS[host](Net(server.port).egress(), self._authority.client())
            result = await web_search_tool([provider], provider_seconds=10)(query=query, limit=limit)
        self.heads = server.heads
        return result


@pytest.fixture
def service(authority: Authority, certificates: dict[str, ssl.SSLContext]) -> Service:
    return Service(authority, certificates)


def as_json(value: object) -> bytes:
    return answer(json.dumps(value).encode(), content_type="application/json")


BRAVE_ROW = {"title": "A <strong>b</strong> &amp; c", "url": "https://a.test/", "description": "one &lt;two&gt;"}
BRAVE = {"web": {"results": [BRAVE_ROW]}}


async def test_brave_is_asked_with_its_header_and_read(service: Service) -> None:
    result = await service.ask("api.search.brave.com", as_json(BRAVE), query="a&b=c ü", limit=7)
    assert result.text == "1. A b & c\nhttps://a.test/\none <two>"
    assert result.data == {
        "provider": "brave",
        "results": [{"title": "A b & c", "url": "https://a.test/", "snippet": "one <two>"}],
        "answer": None,
    }
    head = service.heads[0]
    assert head.startswith(b"GET /res/v1/web/search?q=a%26b%3Dc+%C3%BC&count=7 HTTP/1.1\r\n")
    assert f"\r\nX-Subscription-Token: {KEY}\r\n".encode() in head


async def test_brave_without_a_web_part_has_no_results_and_caps_the_count(service: Service) -> None:
    result = await service.ask("api.search.brave.com", as_json({"query": {}}), limit=100)
    assert not result.is_error
    assert result.text == "brave has no results for this query."
    assert b"count=20 " in service.heads[0]


async def test_tavily_is_asked_by_post_and_its_answer_comes_first(service: Service) -> None:
    got: list[bytes] = []
    rows = [{"title": "T", "url": "https://t.test/", "content": "c", "score": 0.9}]

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        got.append(head)
        writer.write(as_json({"answer": "42, it says.", "results": rows}))

    result = await service.ask("api.tavily.com", respond)
    assert result.text == "42, it says.\n\n1. T\nhttps://t.test/\nc"
    assert result.data is not None
    assert result.data["answer"] == "42, it says."
    assert f"Authorization: Bearer {KEY}\r\n".encode() in got[0]
    assert got[0].startswith(b"POST /search HTTP/1.1\r\n")


DUCK = """<html><body>
<div class="result results_links results_links_deep result--ad">
<a class="result__a" href="https://duckduckgo.com/y.js?ad=1">Ad</a></div>
<div class="result results_links results_links_deep web-result"><h2><a rel="nofollow" class="result__a"
 href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fone.test%2Fp%3Fa%3D1%26b%3D2&amp;rut=x">First <b>hit</b> &amp; more</a>
 </h2><a class="result__snippet" href="//x">Some <b>bold</b>
 words</a></div>
<div class="result web-result"><a class="result__a" href="https://two.test/">Second</a>
<div class="result__snippet">b <div>in</div> c</div></div>
<div class="result web-result">
<a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fduckduckgo.com%2Fy.js%3Fx">Ad two</a></div>
</body></html>"""


@pytest.mark.parametrize("markup", ["<![x[", "<![x[>", "<![if !ie]>", "<!>", "<![CDATA[x]]>", "<?x>"])
async def test_markup_that_pythons_reader_refuses_is_skipped(service: Service, markup: str) -> None:
    page = await service.ask("html.duckduckgo.com", answer((markup + DUCK).encode()))
    assert page.error is None or "page neither lists" in page.text
    row = {"title": f"A {markup}", "url": "https://a.test/", "description": "one"}
    result = await service.ask("api.search.brave.com", as_json({"web": {"results": [row]}}))
    assert result.text.startswith("1. A")


@pytest.mark.parametrize("href", ["http://[", "//duckduckgo.com/l/?uddg=http%3A%2F%2F%5B", "/l/?" + "&" * 5000])
async def test_a_row_whose_address_cannot_be_read_is_left_out(service: Service, href: str) -> None:
    page = f'<div class="result"><a class="result__a" href="{href}">bad</a></div>' + DUCK
    result = await service.ask("html.duckduckgo.com", answer(page.encode()))
    assert result.error is None
    assert "bad" not in result.text


async def test_duckduckgo_rows_are_unwrapped_and_advertisements_dropped(service: Service) -> None:
    result = await service.ask("html.duckduckgo.com", answer(DUCK.encode()))
    assert result.text == (
        "1. First hit & more\nhttps://one.test/p?a=1&b=2\nSome bold words\n\n2. Second\nhttps://two.test/\nb in c"
    )
    assert service.heads[0].startswith(b"POST /html/ HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("status", "page"),
    [
        (
            "202 Accepted",
            "<form action='//duckduckgo.com/anomaly.js'><div class=anomaly-modal__title>",
        ),
        ("202 Accepted", "<p>nothing"),
        ("200 OK", "<div class='anomaly-modal__mask'>Unfortunately, bots use DuckDuckGo too."),
        ("202 Accepted", "<div class=no-results>No results."),
    ],
)
async def test_a_check_for_robots_is_a_rate_limit_and_never_no_results(
    service: Service, status: str, page: str
) -> None:
    result = await service.ask("html.duckduckgo.com", answer(page.encode(), status=status))
    assert result.error is not None
    assert result.error.code == "rate_limited"
    assert "duckduckgo" in result.text
    assert "no results" not in result.text.lower().replace("not mean that there are no results", "")


async def test_no_results_is_told_where_the_page_says_so(service: Service) -> None:
    page = '<div class="result results_links result--no-result"><span class="no-results">No  results.</span></div>'
    result = await service.ask("html.duckduckgo.com", answer(page.encode()))
    assert not result.is_error
    assert "duckduckgo has no results" in result.text


async def test_a_page_that_is_no_result_page_is_a_failure(service: Service) -> None:
    result = await service.ask("html.duckduckgo.com", answer(b"<html><p>Welcome to the new design"))
    assert result.error is not None
    assert result.error.code == "failed"


async def test_searxng_is_read_and_its_private_host_reached() -> None:
    rows = [{"title": f"T{n}", "url": f"https://x.test/{n}", "content": "c"} for n in range(9)]
    async with Server(fixed(as_json({"results": rows}))).running() as server:
        provider = searxng(f"http://127.0.0.1:{server.port}", egress=Egress())
        result = await web_search_tool([provider])(query="x", limit=2)
    assert result.data is not None
    assert [row["url"] for row in result.data["results"]] == ["https://x.test/0", "https://x.test/1"]
    assert server.paths == ["/search?q=x&format=json"]


async def test_searxng_reaches_no_other_private_host_and_follows_no_redirect() -> None:
    async with (
        Server(fixed(answer(b"secret"))).running() as other,
        Server(
            fixed(answer(status="302 F", headers=[f"Location: http://localhost:{other.port}/"]))
        ).running() as server,
    ):
        result = await web_search_tool([searxng(f"http://127.0.0.1:{server.port}")])(query="x")
    assert result.error is not None
    assert other.heads == []


@pytest.mark.parametrize("url", ["searx.test", "ftp://searx.test/", "http://user:pw@searx.test/", ""])
def test_searxng_takes_an_address(url: str) -> None:
    with pytest.raises(ValueError, match="searxng"):
        searxng(url)


async def test_searxng_whose_engines_all_failed_is_no_empty_answer() -> None:
    body = as_json({"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]})
    async with Server(fixed(body)).running() as server:
        result = await web_search_tool([searxng(f"http://127.0.0.1:{server.port}")])(query="x")
    assert result.error is not None
    assert result.error.code == "unavailable"


@pytest.mark.parametrize("host", PROVIDERS)
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (answer(b"bad key sk-secret-key-9f8e7d", status="401 No", content_type="text/plain"), "unavailable"),
        (answer(b"", status="403 No"), "unavailable"),
        (answer(b"slow down", status="429 No", headers=["Retry-After: 3"]), "rate_limited"),
        (answer(b"plan", status="432 No"), "rate_limited"),
        (answer(b"plan", status="433 No"), "rate_limited"),
        (answer(b"oops\nmore", status="500 No"), "http_error"),
        (answer(b"", status="503 No"), "http_error"),
        (answer(status="302 Found", headers=["Location: http://127.0.0.1/"]), "http_error"),
        (answer(b"{not json", content_type="application/json"), "failed"),
        (answer(b"[" * 100_000, content_type="application/json"), "failed"),
        (answer(b'{"web": [], "results": 5}', content_type="application/json"), "failed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhal", "network_error"),
        (b"", "network_error"),
        (answer(b"x", headers=["Content-Encoding: br"]), "unsupported"),
    ],
)
async def test_every_kind_of_failure_has_its_code_and_no_key(
    service: Service, host: str, raw: bytes, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        result = await service.ask(host, raw)
    assert result.error is not None
    assert result.error.code == expected, result.text
    for shown in (result.text, repr(result), result.to_json(), caplog.text, repr(result.error.cause)):
        assert KEY not in shown or host not in KEYED, "a service without a key has none to give away"


async def test_a_key_is_read_when_a_query_is_sent(
    authority: Authority, certificates: dict[str, ssl.SSLContext]
) -> None:
    keys = iter(["first", "second"])
    async with Server(fixed(as_json(BRAVE)), certificates["api.search.brave.com"]).running() as server:
        provider = brave(lambda: next(keys), egress=Net(server.port).egress(), tls=authority.client())
        tool = web_search_tool([provider])
        await tool(query="a")
        await tool(query="b")
    assert [
        b"X-Subscription-Token: " + key + b"\r\n" in head
        for key, head in zip((b"first", b"second"), server.heads, strict=True)
    ] == [True, True]


async def test_without_a_key_the_variable_is_read_at_the_call_and_named_when_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for make, variable in ((brave, "BRAVE_API_KEY"), (tavily, "TAVILY_API_KEY")):
        monkeypatch.delenv(variable, raising=False)
        result = await web_search_tool([make()])(query="x")
        assert result.error is not None
        assert result.error.code == "unavailable"
        assert variable in result.text
        assert "http" not in result.text


@pytest.mark.parametrize("key", ["sk-1\r\nHost: evil", "sk-ü", "a b", "sk-\x00"])
async def test_a_key_that_no_header_can_carry_is_not_shown(key: str) -> None:
    result = await web_search_tool([brave(key)])(query="x")
    assert result.error is not None
    assert result.error.code == "unavailable"
    assert "sk-" not in result.text


async def test_a_key_shows_in_no_repr_no_pickle_and_no_traceback(authority: Authority) -> None:
    async def refuse(host: str) -> list[str]:
        raise OSError("no network")

    provider = brave(KEY, egress=Egress(resolver=refuse))
    assert KEY not in repr(provider)
    assert KEY not in repr(web_search_tool([provider]))
    with pytest.raises(TypeError):
        pickle.dumps(provider)
    with pytest.raises(ToolError) as raised:
        await provider.search("x", 5)
    assert KEY not in "".join(traceback.format_exception(raised.value))


async def test_the_policy_holds_for_providers_too() -> None:
    egress = Egress(block_domains=["brave.com"])
    result = await web_search_tool([brave(KEY, egress=egress)])(query="x")
    assert result.error is not None
    assert result.error.code == "refused_url"


async def test_the_body_of_a_post_is_the_query_alone(
    authority: Authority, certificates: dict[str, ssl.SSLContext]
) -> None:
    bodies: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(
            next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")).split()[1]
        )
        bodies.append(await reader.readexactly(length))
        writer.write(as_json({"results": []}) if b"tavily" in head else answer(DUCK.encode()))
        await writer.drain()
        writer.close()

    for host in ("api.tavily.com", "html.duckduckgo.com"):
        server = await asyncio.start_server(take, "127.0.0.1", 0, ssl=certificates[host])
        provider = PROVIDERS[host](Net(server.sockets[0].getsockname()[1]).egress(), authority.client())
        await web_search_tool([provider])(query="a & b", limit=50)
        server.close()
    asked = json.loads(bodies[0])
    assert asked["query"] == "a & b"
    assert asked["max_results"] == 20
    assert KEY.encode() not in bodies[0]
    assert parse_qs(bodies[1].decode(), keep_blank_values=True) == {"q": ["a & b"], "b": [""]}
