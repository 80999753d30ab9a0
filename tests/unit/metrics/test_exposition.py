"""The text that others read: by the reader of Prometheus' own client, and by that for OpenMetrics."""

import math
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics import parser as open_parser
from prometheus_client.parser import text_string_to_metric_families

from simple_gpu_scheduler.metrics import MetricFamily, MetricSample
from simple_gpu_scheduler.metrics.exposition import OPEN_METRICS, PROMETHEUS, TextFormat, choose_format, expose, number
from simple_gpu_scheduler.metrics.totals import Buckets

Parser = Callable[[str], Iterable]
FORMATS = [
    pytest.param(PROMETHEUS, text_string_to_metric_families, id="prometheus"),
    pytest.param(OPEN_METRICS, open_parser.text_string_to_metric_families, id="openmetrics"),
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def read(parse: Parser, families: list[MetricFamily], text_format: TextFormat) -> list:
    return [*parse(expose(families, text_format).decode())]


@pytest.mark.parametrize(("text_format", "parse"), FORMATS)
@given(label=TEXTS, more=TEXTS, value=st.floats(allow_nan=False))
def test_any_text_and_any_number_survive(text_format: TextFormat, parse: Parser, label: str, more: str, value: float):
    family = MetricFamily("a_b", "gauge", "help", [MetricSample({"one": label, "two": more}, value)])
    [found] = read(parse, [family], text_format)
    assert [(each.labels, each.value) for each in found.samples] == [({"one": label, "two": more}, value)]


@pytest.mark.parametrize(("text_format", "parse"), FORMATS)
def test_a_help_with_every_special_character_survives(text_format: TextFormat, parse: Parser) -> None:
    family = MetricFamily("a", "gauge", 'a "quoted" \\n\nhelp', [MetricSample({}, 1)])
    [found] = read(parse, [family], text_format)
    assert found.documentation == family.help


@pytest.mark.parametrize(("text_format", "parse"), FORMATS)
def test_each_kind_is_read_as_what_it_is(text_format: TextFormat, parse: Parser) -> None:
    waits = Buckets()
    waits.add(5.0)
    kinds = [
        MetricFamily("a_joules_total", "counter", "c", [MetricSample({}, 3)]),
        MetricFamily("b_info", "info", "i", [MetricSample({"name": "x"}, 1)]),
        MetricFamily("c_seconds", "histogram", "h", waits.samples()),
    ]
    counter, info, histogram = read(parse, kinds, text_format)
    is_open = text_format is OPEN_METRICS
    assert (counter.name, counter.type, counter.samples[0].name) == ("a_joules", "counter", "a_joules_total")
    assert (info.name, info.type) == (("b", "info") if is_open else ("b_info", "gauge"))
    assert info.samples[0].name == "b_info"
    by_bound = {each.labels["le"]: each.value for each in histogram.samples if each.name == "c_seconds_bucket"}
    assert (histogram.type, by_bound["1.0"], by_bound["10.0"], by_bound["+Inf"]) == ("histogram", 0, 1, 1)


def test_openmetrics_has_its_end_and_its_names() -> None:
    family = MetricFamily("a_total", "counter", "h", [MetricSample({}, 1)])
    assert expose([family]) == b"# HELP a_total h\n# TYPE a_total counter\na_total 1\n"
    assert expose([family], OPEN_METRICS) == b"# HELP a h\n# TYPE a counter\na_total 1\n# EOF\n"


def test_a_family_without_series_is_left_out() -> None:
    assert expose([MetricFamily("a", "gauge", "h", [])]) == b""


def test_a_byte_that_is_not_utf_8_becomes_a_question_mark() -> None:
    family = MetricFamily("a", "gauge", "h", [MetricSample({"name": "\udcff"}, 1)])
    assert b'name="?"' in expose([family])


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (0.25, "0.25"), (math.inf, "+Inf"), (-math.inf, "-Inf"), (math.nan, "NaN")]
)
def test_numbers_are_written_as_both_formats_want_them(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", True),
        ("application/openmetrics-text;q=0.2, text/plain;q=0.9", False),
        ("Application/OpenMetrics-Text; q=1", True),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=much", True),
        (",;=,q", False),
    ],
)
def test_a_client_gets_the_format_it_prefers(accept: str, is_open: bool) -> None:
    assert choose_format(accept) is (OPEN_METRICS if is_open else PROMETHEUS)
