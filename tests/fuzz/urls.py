"""URL screening: what is let through is read the same by other readers, and is public."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urlsplit

import httpx
from hypothesis import strategies as st

from tests.fuzz.making import ANY_TEXT, joined, refused_as
from toolkit_core.errors import ToolError
from toolkit_core.host.egress import Egress
from toolkit_core.host.egress.urls import Target, read_redirect, read_url

_HOSTS = st.sampled_from(
    [
        "example.com",
        "ex%61mple.com",
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "169.254.169.254",
        "a.local",
        "\u2460.test",
        "b\xfccher.de",
        "xn--bcher-kva.de",
        "8.8.8.8",
        "[2001:4860:4860::8888]",
        "017700000001",
        "\uff0e\uff11",
        "a_b.test",
        "-a.test",
        "a..b",
        "a.test.",
        "100.64.0.1",
    ]
)
_OCTETS = st.lists(st.integers(0, 300), min_size=1, max_size=5).map(lambda parts: ".".join(map(str, parts)))
_V6 = st.integers(0, 2**128 - 1).map(lambda n: f"[{ipaddress.IPv6Address(n)}]")
_MARKS = st.text(alphabet="/\\@:#?%[].\t\n ", max_size=3)
_BUILT = st.tuples(
    st.sampled_from(["http:", "https:", "HTTP:", "ftp:", "", "//"]),
    st.sampled_from(["//", "/", "///", "\\\\", ""]),
    st.sampled_from(["", "u@", "u:p@", "a%40"]),
    _HOSTS | _OCTETS | _V6 | ANY_TEXT,
    st.sampled_from(["", ":80", ":443", ":0", ":22", ":99999", ":", ":8\u0660"]),
    _MARKS | st.just("/path?q=1#f") | ANY_TEXT,
).map("".join)
INPUTS = st.tuples(_BUILT | ANY_TEXT, _BUILT | ANY_TEXT | joined(_MARKS, ANY_TEXT))
_BASE = read_url("https://example.com/a/b")


def check(sent: Any) -> None:
    """A target, or `refused_url`."""
    url, location = sent
    egress = Egress()
    for read in (lambda: read_url(url), lambda: read_redirect(_BASE, location), lambda: egress.screen(url)):
        try:
            target = read()
        except ToolError as e:
            refused_as(e, "refused_url")
        else:
            agreed(target)
    public(egress, url)


def agreed(target: Target) -> None:
    """Python's reader and httpx take it to the same place, and reading it again changes nothing."""
    assert read_url(target.url) == target
    parts = urlsplit(target.url)
    assert parts.hostname == target.host
    assert (parts.port or (443 if parts.scheme == "https" else 80)) == target.port
    assert parts.username is None
    assert httpx.URL(target.url).raw_host.decode("ascii").strip("[]") == target.host
    assert target.url.isascii()
    assert target.url.isprintable()


def public(egress: Egress, url: str) -> None:
    """An address that gets through is a global one."""
    try:
        target = egress.screen(url)
    except ToolError:
        return
    if target.address is not None:
        assert ipaddress.ip_address(target.host).is_global, target
