"""Asks a Prometheus for the curves and figures of the attempts of a run.

It is asked once for each quantity, over the whole run, and what it says is cut by attempt.
"""

from collections.abc import Iterable, Mapping, Sequence

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.jobs import Key
from simple_gpu_scheduler.base.measurement import GPU_CURVE, GpuUse, Measurement
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.base.values import NamedTuple
from simple_gpu_scheduler.journal.records import measurement_values
from simple_gpu_scheduler.journal.samples import DrawnCurve
from simple_gpu_scheduler.measurements.curves import thinned

from ..build import Basis, hear
from ..measured import Measured, sound
from ..numbers import Times
from . import readings, series, windows
from .api import PrometheusApi, SeriesAnswer
from .selector import equal

_MEAN, _MOST, _LAST = "avg_over_time(%s[{}])", "max_over_time(%s[{}])", "last_over_time(%s[{}])"
_FAR = 1e18
_METRICS = ", ".join(f"{each.metrics['utilization'].name} ({each.name})" for each in series.EXPORTERS)

Place = tuple[str, str]  # a GPU as the journal names it, and its host
Columns = dict[str, dict[float, float]]  # by quantity


class PlacedAttempt(NamedTuple):
    """An attempt, and where and when it was."""

    key: Key
    gpus: Sequence[str]
    host: str
    times: Times

    @property
    def places(self) -> list[Place]:
        """Its GPUs."""
        return [(gpu, self.host) for gpu in self.gpus]


class Collected(NamedTuple):
    """What was found: curves and figures of attempts, and sentences about what was not."""

    curves: Mapping[Key, Sequence[DrawnCurve]]
    measured: Mapping[Key, Measured]
    notes: Sequence[str]

    def into(self, basis: Basis) -> Basis:
        """What was found replaces what the journal tells of the same GPU of an attempt."""
        curves = dict(basis.curves)
        for key, drawn in self.curves.items():
            known = {curve.gpu for curve in drawn}
            curves[key] = [*drawn, *(curve for curve in curves.get(key, ()) if curve.gpu not in known)]
        return basis._replace(curves=curves, measured=self.measured)


class _Columns(NamedTuple):
    """The readings of a GPU; those of which a step has several have maxima."""

    means: Columns
    maxima: Columns


def collect(api: PrometheusApi, basis: Basis, selector: str) -> Collected:
    """Ask it. A UserError says why nothing was found."""
    attempts = placed_attempts(basis)
    wanted = [each for each in attempts if basis.job in (None, each.key[0])]
    if not wanted:
        which = f"job {basis.job}" if basis.job is not None else f"run {safe(basis.state.run)}"
        raise UserError(f"{which} has had no GPU yet, so there is nothing to ask a Prometheus for")
    begin, end = min(each.times[0] for each in wanted), max(each.times[1] for each in wanted)
    known = series.know(api.series(series.all_series(selector), begin, end))
    found = _find(api.url, known, wanted, selector)
    quantities = {gpu: known.gpus[gpu] for gpus in found.values() for gpu in gpus}
    read = _read(api, [each.times for each in wanted], quantities, selector)
    gpus = {place: readings.gpu_of(*_joined([read[gpu] for gpu in each])) for place, each in found.items() if each}
    crowded = {place: readings.crowded_times(_on(attempts, place)) for place in gpus}
    curves: dict[Key, list[DrawnCurve]] = {}
    measured: dict[Key, Measured] = {}
    for attempt in wanted:
        uses, drawn = _measure(attempt, gpus, crowded)
        if uses:
            curves[attempt.key], measured[attempt.key] = drawn, sound(measurement_values(Measurement(tuple(uses))))
    if not measured:
        seen = f"{api.url} has series of these GPUs, but no reading while an attempt ran"
        raise UserError(f"{seen}; attempts shorter than its scrape interval may have none")
    return Collected(curves, measured, _notes(api.url, wanted, found, measured))


def placed_attempts(basis: Basis) -> list[PlacedAttempt]:
    """All attempts on GPUs; those that are running, until now."""
    heard = hear(basis)
    hosts = [(each["at"], str(each.get("host", ""))) for each in basis.records if each["event"] == "run began"]
    return [
        PlacedAttempt((job, span.number), span.gpus, _host_at(span.started, hosts), (span.started, end))
        for job, spans in heard.spans.of_jobs.items()
        for span in spans
        if span.gpus and (end := span.end_by(heard.until)) > span.started
    ]


def _host_at(at: float, hosts: Sequence[tuple[float, str]]) -> str:
    """A run may have been resumed on another host."""
    return next((host for since, host in reversed(hosts) if since <= at), hosts[0][1])


def _on(attempts: Iterable[PlacedAttempt], place: Place) -> list[Times]:
    return [each.times for each in attempts if place in each.places]


def _find(
    url: str, known: series.KnownGpus, wanted: Sequence[PlacedAttempt], selector: str
) -> dict[Place, list[series.ExportedGpu]]:  # fmt: skip
    """What it has of each GPU of these attempts."""
    places = sorted({place for each in wanted for place in each.places})
    try:
        found = {place: known.find(*place, is_selected=bool(selector)) for place in places}
    except ValueError as error:
        raise UserError(f"{url}: {error}; choose with --selector") from None
    if not any(found.values()):
        raise UserError(_nothing(url, known, places, selector))
    return found


def _nothing(url: str, known: series.KnownGpus, places: Sequence[Place], selector: str) -> str:
    where = f" with {{{safe(selector)}}}" if selector else ""
    if not known.gpus:
        return f"{url} has no series of GPUs at the time of the run{where}: neither {_METRICS.replace(', ', ' nor ')}"
    gpus = ", ".join(f"{gpu} of {host}" for gpu, host in places[:3]) + (", ..." if len(places) > 3 else "")  # noqa: PLR2004
    example = safe(equal("instance", next(iter(known.gpus)).instance))
    how = f"if that is the machine, choose it with --selector, such as --selector '{example}'"
    return f"{url} has no series{where} of GPU {safe(gpus)}; it has those of {known.shown()}; {how}"


class _Questions:
    """Asks for the quantities of GPUs, one after the other, and keeps the answers."""

    def __init__(self, api: PrometheusApi, selector: str, step: int) -> None:
        self.found: dict[series.ExportedGpu, _Columns] = {}
        self._api, self._selector, self._step = api, selector, step
        # Not all of the step: up to version 2, a reading at its beginning would be in two steps.
        self._over = f"{step * 1000 - 1}ms"

    def ask(self, gpus: Sequence[series.ExportedGpu], quantities: frozenset[str], window: windows.Window) -> None:
        """All that is to be known of these GPUs of an exporter."""
        for gpu in gpus:
            self.found.setdefault(gpu, _Columns({}, {}))
        for quantity in quantities:
            means = self._ask(gpus, quantity, _LAST if quantity == "energy" else _MEAN, window)
            self._take(means, quantity, [(gpu, self.found[gpu].means) for gpu in gpus])
            if quantity in GPU_CURVE and self._step > 1 and any(map(self._has_several, means)):
                maxima = self._ask(gpus, quantity, _MOST, window)
                self._take(maxima, quantity, [(gpu, self.found[gpu].maxima) for gpu in gpus])

    def _has_several(self, answer: SeriesAnswer) -> bool:
        """Whether a step may have more than one reading, so that its maximum is not its mean."""
        return readings.interval_of(at for at, _ in answer.values) <= self._step

    def _ask(
        self, gpus: Sequence[series.ExportedGpu], quantity: str, function: str, window: windows.Window
    ) -> list[SeriesAnswer]:  # fmt: skip
        query = series.query(gpus[0].exporter, quantity, gpus, self._selector, function.format(self._over))
        return self._api.query_range(query, *window, self._step)

    @staticmethod
    def _take(
        answer: Iterable[SeriesAnswer], quantity: str, found: Iterable[tuple[series.ExportedGpu, Columns]]
    ) -> None:  # fmt: skip
        columns = dict(found)
        exporter = next(iter(columns)).exporter
        factor = exporter.metrics[quantity].factor
        for each in answer:
            gpu = series.exported_gpu(exporter, each.labels)
            if gpu in columns:
                known = {at: value * factor for at, value in each.values if 0 <= value < _FAR}
                columns[gpu].setdefault(quantity, {}).update(known)


def _read(
    api: PrometheusApi, times: Sequence[Times], gpus: Mapping[series.ExportedGpu, frozenset[str]], selector: str
) -> Mapping[series.ExportedGpu, _Columns]:
    """All readings of these GPUs, by the quantities of each."""
    step = windows.step_of(times)
    questions = _Questions(api, selector, step)
    for exporter in series.EXPORTERS:
        chosen = [gpu for gpu in gpus if gpu.exporter == exporter]
        quantities = frozenset(quantity for gpu in chosen for quantity in gpus[gpu])
        for window in windows.windows_of(times, step) if chosen else ():
            questions.ask(chosen, quantities, window)
    return questions.found


def _joined(columns: Sequence[_Columns]) -> _Columns:
    """Of series of one GPU under several names, which mostly follow one another."""
    joined = _Columns({}, {})
    for each in columns:
        for all_of, its in zip(joined, each, strict=True):
            for quantity, column in its.items():
                all_of.setdefault(quantity, {}).update(column)
    return joined


def _measure(
    attempt: PlacedAttempt, gpus: Mapping[Place, readings.ReadGpu], crowded: Mapping[Place, Sequence[Times]]
) -> tuple[list[GpuUse], list[DrawnCurve]]:
    uses, drawn = [], []
    for place in attempt.places:
        points = readings.cut(gpus[place], *attempt.times) if place in gpus else []
        if points:
            uses.append(readings.use_of(place[0], gpus[place], points, attempt.times, crowded[place]))
            drawn.append(DrawnCurve(place[0], thinned(points)))
    return uses, drawn


def _notes(
    url: str,
    wanted: Sequence[PlacedAttempt],
    found: Mapping[Place, Sequence[object]],
    measured: Mapping[Key, Measured],
) -> list[str]:
    missing = [f"{gpu} of {host}" for (gpu, host), known in found.items() if not known]
    notes = [f"{url} has no series of GPU {safe(', '.join(missing))}"] if missing else []
    if len(measured) < len(wanted):
        notes.append(f"{url} has readings of {len(measured)} of the {len(wanted)} attempts")
    return notes
