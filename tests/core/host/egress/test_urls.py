"""What an error says of a URL."""

from __future__ import annotations

import pytest

from toolkit_core import ToolError
from toolkit_core.host.egress.urls import read_redirect, read_url


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(ToolError) as caught:
        read_url("http://user:PASSWORD@93.184.216.34/x")
    assert "PASSWORD" not in str(caught.value)
    assert "93.184.216.34/x" in str(caught.value)


@pytest.mark.parametrize("url", ["http://[93.184.216.34]/", "http://[a.b]/", "http://[]/"])
def test_brackets_hold_an_ipv6_address_and_nothing_else(url: str) -> None:
    with pytest.raises(ToolError) as caught:
        read_url(url)
    assert caught.value.code == "refused_url"


@pytest.mark.parametrize("location", ["\\evil.example/x", "a\\b", "/\\evil.example"])
def test_a_backslash_in_a_relative_redirect_is_refused(location: str) -> None:
    with pytest.raises(ToolError, match="backslash") as caught:
        read_redirect(read_url("https://example.com/a/"), location)
    assert caught.value.code == "refused_url"
