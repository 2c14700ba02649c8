"""What an error says of a URL."""

from __future__ import annotations

import pytest

from toolkit_core import ToolError
from toolkit_core.host.egress.urls import read_url


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(ToolError) as caught:
        read_url("http://user:PASSWORD@93.184.216.34/x")
    assert "PASSWORD" not in str(caught.value)
    assert "93.184.216.34/x" in str(caught.value)
