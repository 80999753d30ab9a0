"""What is known of jobs like those of this run: how long they took, and how much memory they needed.

It asks for what earlier runs tell as soon as that matters, and learns how much memory attempts of this run used. Who
reads the journals is up to the caller of the run.
"""

from simple_gpu_scheduler.base.jobs import Attempt
from simple_gpu_scheduler.base.measurement import Measured
from simple_gpu_scheduler.base.text import show_command, show_job
from simple_gpu_scheduler.base.units import show_size
from simple_gpu_scheduler.events import Noticed
from simple_gpu_scheduler.scheduling.estimates import PastLengths
from simple_gpu_scheduler.scheduling.peaks import measured_of, peak_of
from simple_gpu_scheduler.scheduling.templates import template_of_job

from .state import State

# How long nothing starts while the journals are read for peaks: jobs that start without them keep their GPUs to
# themselves, perhaps for hours.
_PATIENCE = 5.0
_ALONE = "so jobs with mem=auto run alone on their GPUs"
_SCOUTS = "jobs with mem=auto run alone on their GPUs until one of their kind has succeeded and its memory is known"
_MOST_KINDS = 5  # that are told what they need
_LONGEST_SHOWN = 60


def ask(state: State) -> None:
    """Ask for what earlier runs tell: once for lengths, and once for peaks."""
    scheduler, history = state.scheduler, state.history
    if scheduler.asks_peaks and not state.asked_peaks:
        state.asked_peaks = state.asked_lengths = True
        state.peaks_due = state.clock.now() + _PATIENCE
        history.load(True)
        if history.unmeasured:
            state.has_told_of_peaks = True
            state.publish(Noticed(f"{history.unmeasured}, {_ALONE}, unless earlier runs show what they need"))
    elif scheduler.asks_lengths and not state.asked_lengths:
        state.asked_lengths = True
        history.load(False)


def is_awaited(state: State) -> bool:
    """Whether the peaks of earlier runs were asked for a moment ago, and have not come yet."""
    return state.clock.now() < state.peaks_due


def arrived(state: State, past: PastLengths) -> None:
    """What was asked for has come."""
    state.scheduler.add_history(past.history, past.peaks)
    if past.peaks is not None:
        state.peaks_due = float("-inf")


def peak(state: State, attempt: Attempt, measured: Measured | None) -> int | None:
    """The most memory that an attempt used on one of its GPUs, if that is known and matters."""
    if not (measured and state.scheduler.asks_peaks):
        return None
    return peak_of(measured.measurement, len(attempt.gpus))


def tell_nothing_learned(state: State, attempt: Attempt, peak: int | None) -> None:
    """A scout has succeeded and tells nothing, which is said once."""
    is_scout = attempt.alone and attempt.job.mem is None
    if peak is None and is_scout and not state.has_told_of_peaks:
        state.has_told_of_peaks = True
        why = "it was too short, or the driver does not say"
        said = f"{show_job(attempt.job)}: how much memory it used on its GPU is unknown ({why}), {_ALONE}"
        state.publish(Noticed(f"{said} until another job of that kind shows it"))


def tell_of_scouts(state: State) -> None:
    """Jobs wait although their GPUs have places left, since others are alone there: said once."""
    if state.has_told_of_peaks or state.has_told_of_scouts or not state.scheduler.waits_for_peaks:
        return
    if any(run.attempt.alone and run.attempt.job.mem is None for run in state.attempts.values()):
        state.has_told_of_scouts = True
        state.publish(Noticed(_SCOUTS))


def tell_need(state: State, attempt: Attempt) -> None:
    """An attempt starts that goes by the memory of others: what its kind is given is said once."""
    job, told = attempt.job, state.told_kinds
    if not (job.mem_auto and job.mem) or len(told) >= _MOST_KINDS:
        return
    kind = template_of_job(job)
    if kind in told or (attempt.alone and attempt.number > 1):  # alone since it failed, which is no news of its kind
        return
    told.add(kind)
    shown = show_command(kind.encode("utf-8", "surrogateescape"))
    shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
    need = f"are given {show_size(job.mem)} ({show_size(measured_of(job.mem))} measured, and a fifth)"
    if attempt.alone:
        need = "run alone on their GPUs: what was measured, and a fifth, is as much as the largest GPU has, or more"
    state.publish(Noticed(f'mem=auto: jobs like "{shown}" {need}'))
