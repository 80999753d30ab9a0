"""Metric families -> text, in the format of Prometheus or that of OpenMetrics. Pure.

It does not know which metrics there are.
"""

from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Iterable, Iterator, NamedTuple

from . import MetricFamily, MetricSample


class TextFormat(NamedTuple):
    """A format, by what HTTP calls it."""

    content_type: str
    is_open: bool


PROMETHEUS = TextFormat("text/plain; version=0.0.4; charset=utf-8", is_open=False)
OPEN_METRICS = TextFormat("application/openmetrics-text; version=1.0.0; charset=utf-8", is_open=True)
_OPEN_TYPE = "application/openmetrics-text"
_PLAIN_TYPES = ("text/plain", "text/*", "*/*")
_KINDS = {"info": "gauge"}  # what Prometheus' own format calls a kind that it does not have


def choose_format(accept: str) -> TextFormat:
    """What a client prefers, by its header Accept."""
    wanted = [_weigh(part) for part in accept.split(",")]
    is_open = max([weight for kind, weight in wanted if kind == _OPEN_TYPE], default=0.0)
    plain = max([weight for kind, weight in wanted if kind in _PLAIN_TYPES], default=0.0)
    return OPEN_METRICS if is_open and is_open >= plain else PROMETHEUS


def _weigh(part: str) -> tuple[str, float]:
    kind, *parameters = part.split(";")
    for each in parameters:
        name, _, value = each.partition("=")
        if name.strip() == "q":
            with suppress(ValueError):
                return kind.strip().lower(), float(value)
    return kind.strip().lower(), 1.0


def expose(families: Iterable[MetricFamily], text_format: TextFormat = PROMETHEUS) -> bytes:
    """The text. A family without samples is left out."""
    lines = [line for family in families if family.samples for line in _lines(family, text_format)]
    if text_format.is_open:
        lines.append("# EOF")
    # A lone surrogate stands for a byte that is not UTF-8, and no format has room for that.
    return "".join([line + "\n" for line in lines]).encode("utf-8", "replace")


def _lines(family: MetricFamily, text_format: TextFormat) -> Iterator[str]:
    name, kind = family.name, family.kind
    if text_format.is_open:
        name = name.removesuffix({"counter": "_total", "info": "_info"}.get(kind, ""))
    else:
        kind = _KINDS.get(kind, kind)
    yield f"# HELP {name} {_escaped(family.help) if text_format.is_open else _escaped(family.help, quotes=False)}"
    yield f"# TYPE {name} {kind}"
    for sample in family.samples:
        yield _line(family.name, sample)


def _line(name: str, sample: MetricSample) -> str:
    labels = ",".join([f'{label}="{_escaped(value)}"' for label, value in sample.labels.items()])
    return f"{name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {number(sample.value)}"


def _escaped(text: str, *, quotes: bool = True) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text


def number(value: float) -> str:
    """As both formats write it."""
    if value == float("inf"):
        return "+Inf"
    if value == float("-inf"):
        return "-Inf"
    return "NaN" if value != value else repr(value)  # noqa: PLR0124 - this is how NaN is told
