"""Events -> the lines of a journal. Pure: the time is passed in, and nothing is written here.

Every line starts with `{"event":"`, which cannot occur inside a JSON text: so a line that was cut off by a full disk
can be separated from the next one written after it.
"""

# What `json` itself uses; loading all of `json` takes 2 ms.
from _json import encode_basestring_ascii as quote

from simple_gpu_scheduler import events
from simple_gpu_scheduler.base.jobs import Job, Patience
from simple_gpu_scheduler.base.measurement import Figures, GpuUse, Measurement
from simple_gpu_scheduler.base.units import parse_patience, write_patience
from simple_gpu_scheduler.base.values import Any, Callable, Iterable, Mapping

# The options of a job, written if they are not the default; `after` and `name` are written separately.
OPTIONS = ("gpus", "mem", "mem_auto", "timeout", "time", "retries", "priority", "label", "stall", "idle")
_DEFAULTS = Job._field_defaults
_PATIENCES = ("stall", "idle")
_DIGITS = 3


def encode(event: events.Event, at: float) -> str:
    """The lines of an event, each with its newline; nothing if it is not recorded."""
    write = _LINES.get(type(event))
    return write(event, at) if write else ""


def record(name: str, at: float, **values: Any) -> str:
    """One line, of values that JSON knows."""
    rest = "".join(f',"{key}":{_json(value)}' for key, value in values.items())
    return f'{{"event":"{name}","at":{at:.3f}{rest}}}\n'


def _json(value: object) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{quote(key)}:{_json(each)}" for key, each in value.items()) + "}"
    if isinstance(value, Iterable):
        return f"[{','.join(map(_json, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def text(data: bytes) -> str:
    """Bytes as text for JSON; those that are not UTF-8 become lone surrogates, as in Python."""
    return data.decode("utf-8", "surrogateescape")


def option_values(job: Job) -> dict[str, Any]:
    """The options of a job that are not the default, except its name and dependencies."""
    return _written({name: value for name in OPTIONS if (value := getattr(job, name)) != _DEFAULTS[name]})


def _written(options: Mapping[str, Any]) -> dict[str, Any]:
    """A patience is text, as it is typed."""
    return {name: write_patience(value) if isinstance(value, Patience) else value for name, value in options.items()}


def read_options(record: Mapping[str, Any]) -> dict[str, Any]:
    """Options that were written like this. A ValueError says what is wrong with one."""
    options = {name: record[name] for name in OPTIONS if name in record}
    return options | {name: parse_patience(options[name]) for name in _PATIENCES if name in options}


def measurement_values(measurement: Measurement) -> dict[str, Any]:
    """For JSON; what was not told is absent."""
    values: dict[str, Any] = {}
    if measurement.gpus:
        values["gpus"] = [_gpu_values(use) for use in measurement.gpus]
    cpu = _told(measurement.cpu._asdict())
    return {**values, "cpu": cpu} if cpu else values


def _gpu_values(use: GpuUse) -> dict[str, Any]:
    values = use._asdict()
    if not use.shared:
        del values["shared"]
    return {"gpu": use.gpu, "seconds": round(use.seconds, _DIGITS)} | _told(values)


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _value(value)
        for name, value in values.items()
        if value or (value is not None and type(value) in (int, float))
    }


def _value(value: Any) -> Any:
    if isinstance(value, Figures):
        return _told(value._asdict())
    if isinstance(value, Mapping):
        return {name: _value(each) for name, each in value.items()}
    return round(value, _DIGITS) if type(value) is float else value


def _job_read(job: Job, at: float) -> str:
    place = f',"source":{quote(job.place.input)}' if job.place.input else ""
    place += f',"digest":{quote(job.place.digest)}' if job.place.digest else ""
    rest = "".join(f',"{name}":{_json(value)}' for name, value in option_values(job).items())
    if job.name:
        rest += f',"name":{quote(job.name)}'
    if job.after:
        rest += f',"after":[{",".join(map(str, job.after))}]'
    return (
        f'{{"event":"job read","at":{at:.3f},"job":{job.number},"line":{job.place.line}{place}'
        f',"command":{quote(text(job.command))}{rest}}}\n'
    )


def _jobs_read(event: events.JobsRead, at: float) -> str:
    lines = "".join([_job_read(job, at) for job in event.jobs])
    if not event.mark:
        return lines
    values = event.mark._asdict()
    values["defaults"] = _written(values["defaults"])
    if values["holds"] is None:
        del values["holds"]
    if not values["unfinished"]:
        del values["unfinished"]
    return lines + record("read up to", at, **values)


def _line_refused(event: events.LineRefused, at: float) -> str:
    place = event.place
    rest = {"digest": place.digest} if place.digest else {}
    return record(
        "line refused", at, job=event.number, line=place.line, source=place.input, problem=event.problem, **rest
    )


def _started(event: events.JobStarted, at: float) -> str:
    attempt = event.attempt
    rest = f',"log":{quote(event.log)}' if event.log else ""
    if attempt.job.mem_auto and attempt.job.mem:
        rest += f',"mem":{attempt.job.mem}'
    if attempt.alone:
        rest += ',"alone":true'
    return (
        f'{{"event":"job started","at":{at:.3f},"job":{attempt.job.number},"attempt":{attempt.number}'
        f',"gpus":[{",".join(map(quote, attempt.gpus))}],"slots":[{",".join(map(str, attempt.slots))}]{rest}}}\n'
    )


def _measured(event: events.AttemptMeasured, at: float) -> str:
    attempt = event.attempt
    values = measurement_values(event.measurement)
    return record("attempt measured", at, job=attempt.job.number, attempt=attempt.number, **values)


def _ended(event: events.JobEnded, at: float) -> str:
    outcome = event.outcome
    rest = f',"reason":{quote(outcome.reason)}' if outcome.reason else ""
    if event.is_interrupted:
        rest += ',"interrupted":true'
    if event.is_cancelled:
        rest += ',"cancelled":true'
    return (
        f'{{"event":"job ended","at":{at:.3f},"job":{event.attempt.job.number},"attempt":{event.attempt.number}'
        f',"outcome":"{outcome.kind}","code":{outcome.code},"started":{event.started_at:.3f}'
        f',"runtime":{event.length:.3f},"final":{"true" if event.is_final else "false"}{rest}}}\n'
    )


def _left_behind(event: events.LeftBehind, at: float) -> str:
    server = {"server": event.server} if event.server else {}
    return record(
        "left behind", at, job=event.attempt.job.number, swept=event.swept, beyond_us=event.beyond_us, **server
    )


def _run_ended(event: events.RunEnded, at: float) -> str:
    values = event._asdict()
    for name in ("cancelled", "interrupted", "stalled"):
        if not values[name]:
            del values[name]
    return record("run ended", at, **values)


def _numbers(jobs: Iterable[Job]) -> list[int]:
    return [job.number for job in jobs]


_LINES: Mapping[type, Callable[[Any, float], str]] = {
    events.RunBegan: lambda event, at: record("run began", at, **event._asdict()),
    events.JobsRead: _jobs_read,
    events.InputEnded: lambda event, at: record("input ended", at, path=event.path),
    events.LineRefused: _line_refused,
    events.JobStarted: _started,
    events.JobBegan: lambda event, at: record(
        "job began", at, job=event.attempt.job.number, attempt=event.attempt.number, where=event.where
    ),
    events.AttemptMeasured: _measured,
    events.StallSeen: lambda event, at: record(
        "stall seen",
        at,
        job=event.attempt.job.number,
        attempt=event.attempt.number,
        reason=event.reason,
        ends=event.ends,
    ),
    events.JobEnded: _ended,
    events.JobDropped: lambda event, at: record(
        "job dropped", at, job=event.job.number, reason=event.reason, cancelled=event.is_cancelled
    ),
    events.JobRequeued: lambda event, at: record("job requeued", at, job=event.job.number, why=event.why),
    events.StartRefused: lambda event, at: record(
        "job requeued", at, job=event.attempt.job.number, attempt=event.attempt.number, why=event.why
    ),
    events.LeftBehind: _left_behind,
    events.StopAsked: lambda event, at: record("stop asked", at, **event._asdict()),
    events.Paused: lambda event, at: record("paused" if event.is_paused else "continued", at),
    events.Waited: lambda event, at: record(
        "waited", at, waits=[{"gpu": wait.gpu, "for": wait.sentence} for wait in event.waits]
    ),
    events.NeighbourCame: lambda event, at: record(
        "neighbour came", at, gpu=event.gpu, who=event.who, beside=_numbers(event.beside)
    ),
    events.GpuSetAside: lambda event, at: record(
        "gpu set aside", at, gpu=event.gpu, reason=event.reason, again=_numbers(event.again)
    ),
    events.GpuReturned: lambda event, at: record("gpu returned", at, gpu=event.gpu),
    events.Noticed: lambda event, at: record("noticed", at, sentence=event.sentence, is_failure=event.is_failure),
    events.RunEnded: _run_ended,
}
