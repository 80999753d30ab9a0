"""Metrics for Prometheus: of the GPUs of this machine, and of this user's active runs and their jobs.

`exporter` gathers values, `families` says what they are called, `exposition` writes them as text. `serve`, `textfile`
and `dcgm` give them to others.
"""

from simple_gpu_scheduler.base.values import Mapping, NamedTuple, Sequence


class MetricSample(NamedTuple):
    """One series: its labels and its value. `suffix` follows the name of its metric, as `_bucket` does."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


class MetricFamily(NamedTuple):
    """All series of one name. `kind` is gauge, counter, histogram or info; the name of a counter ends in `_total`."""

    name: str
    kind: str
    help: str
    samples: Sequence[MetricSample]
