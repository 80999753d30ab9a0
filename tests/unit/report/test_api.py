"""The address of a Prometheus."""

import base64

import pytest

from simple_gpu_scheduler.report.prometheus.api import Address, parse_address


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("http://localhost:9090", Address("http://localhost:9090")),
        ("https://example.org/prometheus/", Address("https://example.org/prometheus")),
        ("http://[::1]:9090", Address("http://[::1]:9090")),
        ("http://ada:pa%40ss:w@h:1/x", Address("http://h:1/x", basic("ada:pa@ss:w"))),
        ("http://ada@h", Address("http://h", basic("ada:"))),
    ],
)
def test_the_password_is_in_the_header_alone(typed: str, address: Address) -> None:
    assert parse_address(typed) == address


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("localhost:9090", "http://"), ("file:///etc/passwd", "http://"), ("http://", "http://"), ("", "http://"),
        ("http://h/graph?g0.expr=up", "leave away"), ("http://h/#x", "leave away"), ("http://a b", "a space"),
        ("http://a\n", "a control character"), ("http://h:x", "[Pp]ort"), ("http://[::1", "IPv6"),
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(typed: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_address(typed)
