"""Watches running jobs that asked for it: warns of those that stall, or ends them.

Before, what is known is written to the log of the job. What counts as stalled is decided in `measurements.stillness`.
"""

from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.base.measurement import GpuUse, Measurement, Stillness
from simple_gpu_scheduler.base.text import show_job, show_moment
from simple_gpu_scheduler.base.units import show_duration, show_share, show_size
from simple_gpu_scheduler.base.values import Sequence
from simple_gpu_scheduler.engines.protocol import NEVER, Diagnosed
from simple_gpu_scheduler.events import Noticed, StallSeen
from simple_gpu_scheduler.measurements.stillness import IDLE, STALL, Due, idles_at, stalls_at
from simple_gpu_scheduler.output.log_file import state_of_file, write_remark

from . import attempts
from .state import State, UnderWay, Watched

# How often to look whether a job has printed something: as a share of what is waited for, but not all the time.
_SHARE, _SHORTEST_PAUSE = 1 / 60, 2.0
_AGAIN = 1.0  # the next reading may show it
_UNKNOWN_AFTER = 10.0  # seconds without any reading


def watch(state: State, attempt: Attempt, log: str) -> None:
    """An attempt that runs from now on, or from whose start we know nothing, if it is to be watched."""
    job, run, failures = attempt.job, state.attempts[attempt.key], state.rules.failures
    stall = failures.stall if job.stall is None else job.stall
    idle = failures.idle if job.idle is None else job.idle
    lengths = [each.seconds for each in (stall, idle if job.gpus else None) if each and each.seconds]
    if not lengths or run.began is None or run.ended is not None:
        return
    now = state.clock.now()
    sees = bool(log) and state.rules.sees_output
    state.watched[attempt.key] = Watched(stall, idle, now, log, state_of_file(log), now if sees else None)
    state.watch_at = min(state.watch_at, now + min(lengths))
    if stall and stall.seconds and not sees:
        _tell_of_blindness(state, attempt, "stall", "its output is not kept")


def _tell_of_blindness(state: State, attempt: Attempt, option: str, why: str) -> None:
    """Once: as a rule it is so for all jobs."""
    if not state.has_told_of_blindness:
        state.has_told_of_blindness = True
        sentence = f"{show_job(attempt.job)}: {option} has no effect, since {why}"
        state.publish(Noticed(sentence, is_warning=True))


def check(state: State) -> None:
    """Look at them, if it is time."""
    now = state.clock.now()
    if now < state.watch_at:
        return
    state.watch_at = NEVER
    for key, watched in tuple(state.watched.items()):
        run = state.attempts.get(key)
        if run is None or run.ending or run.ended is not None:
            del state.watched[key]
        elif not watched.found:
            _check(state, run, watched, now)


def _check(state: State, run: UnderWay, watched: Watched, now: float) -> None:
    key = run.attempt.key
    watched = state.watched[key] = _with_output(watched, now)
    still = state.engine.stillness(key)
    dues = _dues(still, watched)
    found = [due for due in dues if due.has_come]
    if still and found:
        _find(state, run, watched, still, found)
        return
    wanted = {name for name, each in ((STALL, watched.stall), (IDLE, watched.idle)) if each and each.seconds}
    if wanted <= watched.told:
        del state.watched[key]
        return
    shortest = min(each.seconds for each in (watched.stall, watched.idle) if each and each.seconds)
    if still is None and now - watched.since > max(shortest, _UNKNOWN_AFTER) and run.attempt.gpus:
        _tell_of_blindness(state, run.attempt, "stall or idle", "the utilisation of its GPU is not known")
    pause = max(_SHORTEST_PAUSE, shortest * _SHARE)
    at = min([now + pause, *(max(due.at, now + _AGAIN) for due in dues)])
    state.watch_at = min(state.watch_at, at)


def _with_output(watched: Watched, now: float) -> Watched:
    """Its clock is ours: that of a file server may be wrong, and this machine's may be set."""
    seen = state_of_file(watched.log)
    if watched.quiet_since is None or seen == watched.seen:
        return watched
    return watched._replace(seen=seen, quiet_since=now)


def _dues(still: Stillness | None, watched: Watched) -> list[Due]:
    if still is None:
        return []
    dues = stalls_at(still, watched.quiet_since, watched.stall), idles_at(still, watched.idle)
    return [due for due in dues if due and due.cause not in watched.told]


def _find(state: State, run: UnderWay, watched: Watched, still: Stillness, dues: Sequence[Due]) -> None:
    found = tuple((_reason(due, still), due.patience.ends) for due in dues)
    told = watched.told | {due.cause for due in dues}
    state.watched[run.attempt.key] = watched._replace(found=found, told=told)
    if watched.log:
        state.engine.diagnose(run.attempt)
    else:
        diagnosed(state, Diagnosed(run.attempt, ()))


def _reason(due: Due, still: Stillness) -> str:
    long = show_duration(due.patience.seconds)
    if due.cause != STALL:
        return f"its GPU{'s were' if len(still.levels) > 1 else ' was'} at 0 % for {long}"
    if not still.levels:
        return f"no output and no CPU time used for {long}"
    levels = " and ".join(dict.fromkeys(f"{level:.0f} %" for level in still.levels))
    return f"no output and a constant utilisation of {levels} for {long}"


def diagnosed(state: State, report: Diagnosed) -> None:
    """What its processes are doing is known: say what was found and, if that was asked, end it."""
    attempt = report.attempt
    key = attempt.key
    watched, run = state.watched.get(key), state.attempts.get(key)
    if not watched or not watched.found or not run or run.ending or run.ended is not None:
        return  # it has ended meanwhile, or is being ended
    written = _write(state, run, watched, report.lines) if watched.log else None
    log = watched.log if written else ""
    for reason, ends in watched.found:
        state.publish(StallSeen(attempt, reason, ends, log, written))
        written = None  # it is told once
        state.attempts[key] = state.attempts[key]._replace(warned=(state.clock.wall(), reason))
    state.watched[key] = state.watched[key]._replace(found=())
    state.watch_at = min(state.watch_at, state.clock.now())
    ending = [reason for reason, ends in watched.found if ends]
    if ending:
        attempts.end_stalled(state, key, ending[0])


def _write(state: State, run: UnderWay, watched: Watched, lines: Sequence[str]) -> tuple[int, int] | None:
    """Write to its log what is known. What we write is no output of the job."""
    key = run.attempt.key
    measured = state.engine.measured(key)
    known = _known(measured.measurement if measured else Measurement())
    head = [f"{show_moment(state.clock.wall())}: {reason}" for reason, _ in watched.found]
    ran = f"after {show_duration(run.runtime(state.clock.now()))}"
    end = [f"it is ended {ran}" if any(ends for _, ends in watched.found) else f"it continues {ran}"]
    before = state_of_file(watched.log)
    try:
        written = write_remark(watched.log, [*head, *known, *lines, *end])
    except OSError as error:
        if not isinstance(error, FileNotFoundError):  # it was deleted
            state.complain(f"cannot write to the log {watched.log}: {error.strerror}")
        return None
    if before == watched.seen and written[0] == before[0]:
        state.watched[key] = watched._replace(seen=state_of_file(watched.log))
    return written


def _known(measurement: Measurement) -> list[str]:
    lines = [f"gpu {use.gpu}: {now}" for use in measurement.gpus if (now := _now(use))]
    cpu = measurement.cpu
    if cpu.seconds is not None:
        memory = f", up to {show_size(cpu.peak_memory)} of memory" if cpu.peak_memory else ""
        lines.append(f"its processes: {cpu.seconds:.0f} s of CPU time{memory}")
    return lines


def _now(use: GpuUse) -> str:
    """The last readings of a GPU."""
    now, said = use.now, []
    if "utilization" in now:
        said.append(f"utilisation {now['utilization']:.0f} %")
    if "memory" in now:
        total = use.total_memory
        said.append(f"memory {show_share(now['memory'], total) if total else show_size(now['memory'])}")
    if "temperature" in now:
        said.append(f"{now['temperature']:.0f} °C")
    if "power" in now:
        said.append(f"{now['power']:.0f} W")
    return ", ".join(said)
