"""What a notification of a run says, and when it is sent. Pure; it does not know how it is sent."""

import json

from simple_gpu_scheduler.base.jobs import Attempt, Fate, Job, Outcome
from simple_gpu_scheduler.base.text import safe, visible
from simple_gpu_scheduler.base.values import Any, NamedTuple, Sequence
from simple_gpu_scheduler.events import JobDropped, JobEnded, RunEnded
from simple_gpu_scheduler.events.ledger import fate_of

from . import Trigger

JobEnd = JobEnded | JobDropped

MOST_JOBS = 100
# With its NUL, what exec takes of one string: 128 KiB.
LONGEST = 131_071
# Bytes; a line in a mail's header may have 998.
_LONGEST_SUMMARY = 900
MOST_SENTENCES = 3
_ROOM_FOR_OTHERS = 200
# The variables of an outer scheduler, about the job that we are, would be wrong here.
_OF_A_JOB = (b"SGS_ATTEMPT", b"SGS_SLOT")


class Numbers(NamedTuple):
    """Counts of ended jobs, as in the summary."""

    succeeded: int = 0
    failed: int = 0
    timed_out: int = 0
    not_started: int = 0
    cancelled: int = 0
    interrupted: int = 0
    stalled: int = 0


def numbers_of(end: RunEnded) -> Numbers:
    """Those of the summary."""
    return Numbers(*[getattr(end, name) for name in Numbers._fields])


class Told(NamedTuple):
    """A job, what became of it, its log if it has one, and the last lines of that."""

    job: Job
    fate: Fate
    outcome: Outcome
    attempt: Attempt | None = None
    length: float | None = None
    log: str = ""
    last_lines: Sequence[str] = ()


class Notification(NamedTuple):
    """A notification. `code` is the run's exit code, at its end; `more` counts jobs that are not listed."""

    trigger: Trigger
    summary: str
    run: str = ""
    host: str = ""
    directory: str = ""
    numbers: Numbers = Numbers()
    seconds: float = 0.0
    code: int | None = None
    jobs: Sequence[Told] = ()
    more: int = 0


def is_failure(event: JobEnd) -> bool:
    """Whether a job failed for good, by itself."""
    if isinstance(event, JobDropped):
        return not event.is_cancelled
    by_others = event.is_interrupted or event.is_cancelled
    return event.is_final and not by_others and event.outcome.kind != "succeeded"


def is_end(event: JobEnd) -> bool:
    """Whether a job ended for good; a job ended by a stop is to run again."""
    return isinstance(event, JobDropped) or (event.is_final and not event.is_interrupted)


def trigger_of(events: Sequence[JobEnd], on: frozenset[Trigger]) -> Trigger:
    """The kind of a notification about these jobs."""
    return "fail" if "fail" in on and any(is_failure(event) for event in events) else "each"


def summarize(events: Sequence[JobEnd], sentences: Sequence[str]) -> str:
    """One line about ended jobs, given sentences about the first ones."""
    count, failed = len(events), sum(map(is_failure, events))
    if count == 1:
        return cut_text(sentences[0])
    verb = "did not succeed" if failed == count else f"ended, {failed} of them unsuccessfully"
    shown = sentences[:MOST_SENTENCES]
    more = f"; and {count - len(shown)} more" if count > len(shown) else ""
    room = (_LONGEST_SUMMARY - _ROOM_FOR_OTHERS) // len(shown)
    return f"{count} jobs {verb}: {'; '.join(cut_text(each, room) for each in shown)}{more}"


def cut_text(text: str, most: int = _LONGEST_SUMMARY) -> str:
    """At most this many bytes of it, on one line."""
    data = safe(text).encode("utf-8", "backslashreplace")
    return data.decode() if len(data) <= most else f"{_cut(data, most - 3).decode()}…"


def told(event: JobEnd) -> Told:
    """The entry of a job."""
    if isinstance(event, JobDropped):
        fate = fate_of("not started", is_cancelled=event.is_cancelled)
        return Told(event.job, fate, Outcome("not started", reason=event.reason))
    fate = fate_of(event.outcome.kind, is_cancelled=event.is_cancelled)
    return Told(event.attempt.job, fate, event.outcome, event.attempt, event.length)


def variables(notification: Notification, longest: int = LONGEST) -> dict[bytes, bytes]:
    """The environment variables, always all of them; none reaches `longest`, the limit of exec."""
    first = notification.jobs[0] if notification.jobs and notification.trigger != "end" else None
    values: dict[str, object] = {
        "EVENT": notification.trigger,
        "RUN": notification.run,
        "SUMMARY": notification.summary,
        **{name.upper(): count for name, count in notification.numbers._asdict().items()},
        "SECONDS": round(notification.seconds, 3),
        "CODE": "" if notification.code is None else notification.code,
        "HOST": notification.host,
        "DIRECTORY": notification.directory,
        "JOB": first.job.number if first else "",
        "NAME": first.job.name if first else "",
        "COMMAND": first.job.command if first else "",
        "OUTCOME": first.fate if first else "",
        "LOG": first.log if first else "",
    }
    return {f"SGS_{name}".encode(): _value(name, value, longest) for name, value in values.items()}


def environment(user: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """The user's environment, without the variables of a notification."""
    ours = {*variables(Notification("end", "")), *_OF_A_JOB}
    return [b"%s=%s" % item for item in user if item[0] not in ours]


def document(notification: Notification) -> bytes:
    """What is on its stdin: one JSON object, on one line."""
    fields: dict[str, Any] = {
        "event": notification.trigger,
        "run": notification.run,
        "summary": notification.summary,
        **notification.numbers._asdict(),
        "seconds": round(notification.seconds, 3),
        "code": notification.code,
        "host": notification.host,
        "directory": visible(notification.directory),
        "jobs": [_fields(each) for each in notification.jobs],
        "more_jobs": notification.more,
    }
    return json.dumps(fields).encode() + b"\n"


def _fields(each: Told) -> dict[str, Any]:
    attempt = each.attempt
    return {
        "job": each.job.number,
        "name": each.job.name,
        "place": visible(str(each.job.place)),
        "command": each.job.command.decode("utf-8", "backslashreplace"),
        "outcome": each.fate,
        "code": each.outcome.code,
        "reason": visible(each.outcome.reason),
        "runtime": None if each.length is None else round(each.length, 3),
        "gpus": list(attempt.gpus) if attempt else [],
        "attempt": attempt.number if attempt else 0,
        "log": visible(each.log),
        "last_lines": [safe(line) for line in each.last_lines],
    }


def _value(name: str, value: object, longest: int) -> bytes:
    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    return _cut(data.replace(b"\0", b"?"), longest - len(f"SGS_{name}="))


def _cut(data: bytes, most: int) -> bytes:
    """At most this many bytes, without a partial character at the end."""
    if len(data) <= most:
        return data
    end = most
    while end > most - 3 and data[end] & 0xC0 == 0x80:  # noqa: PLR2004 - a byte that continues a character
        end -= 1
    return data[:end]
