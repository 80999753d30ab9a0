"""The matchers that choose among the series of a Prometheus."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.report.prometheus.selector import among, equal, parse_selector

LABELS = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,5}", fullmatch=True).filter(lambda name: name != "__name__")
OPERATORS = st.sampled_from(["=", "!=", "=~", "!~"])


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@pytest.mark.parametrize(
    ("typed", "matchers"),
    [
        ('job="dcgm"', 'job="dcgm"'),
        (' { job = "dcgm" , cluster=~"a|b", } ', 'job = "dcgm" , cluster=~"a|b"'),
        ("""a='x"}',b!~`\\`""", """a='x"}',b!~`\\`"""),
        ('{a="}"}', 'a="}"'),
    ],
)
def test_it_may_be_in_braces(typed: str, matchers: str) -> None:
    assert parse_selector(typed) == matchers


@given(st.lists(st.tuples(LABELS, OPERATORS, st.text()), min_size=1))
def test_whatever_is_quoted_is_a_matcher(matchers: list[tuple[str, str, str]]) -> None:
    text = ",".join(label + operator + quoted(value) for label, operator, value in matchers)
    assert parse_selector(text) == parse_selector("{" + text + "}") == text


@given(st.text(alphabet="{}\"'`\\,=~!ab_ \n()[]#"))
def test_nothing_but_matchers_gets_through(text: str) -> None:
    try:
        found = parse_selector(text)
    except ValueError:
        return
    strings = r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\\\n]|\\.)*'|`[^`]*`"
    assert set(re.sub(strings, "", found)) <= set("ab_=!~, \n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("job=dcgm", """the value after job has no quotes; the shell leaves them in --selector 'job="dcgm"'"""),
        ("a!=b", "the value after a has no quotes"),
        ('a="b" c="d"', "is no label matcher"),
        ('a="b",,c="d"', "is no label matcher"),
        ('a="b', "is no label matcher"),
        ('a="b"}', "is no label matcher"),
        ('a="b"} or x{c="d"', "is no label matcher"),
        ("{}", "it has no label matcher"),
        (",", "is no label matcher"),
        ('a-b="c"', "is no label matcher"),
        ('a="b",__name__=~".+"', "the names of the metrics are given"),
    ],
)
def test_what_is_wrong_is_said(typed: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        parse_selector(typed)


def test_values_are_taken_literally() -> None:
    assert among("gpu", ["1", "0"]) == 'gpu=~"0|1"'
    assert among("instance", ["a.b:9400", 'x"|.*']) == r'instance=~"a\\.b:9400|x\\\"\\|\\.\\*"'
    assert equal("a", 'b"\\\n') == r'a="b\"\\\n"'


@given(st.lists(st.text(alphabet='ab.|*"\\-:/ {}[]()+?^$', min_size=1), min_size=1))
def test_a_pattern_matches_its_values_alone(values: list[str]) -> None:
    matcher = among("x", values)
    assert parse_selector(matcher) == matcher
    pattern = matcher[4:-1].replace('\\"', '"').replace("\\\\", "\\")
    assert all(re.fullmatch(pattern, value) for value in values)
    assert not re.fullmatch(pattern, "never")
