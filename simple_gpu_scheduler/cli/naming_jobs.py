"""How people name jobs of a run: by number, or by the name that a line gave. It looks names up in the journal."""

from collections.abc import Sequence

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.journal.states import JobState, RunState
from simple_gpu_scheduler.wording import safe

from . import runs

_MOST_DIGITS = 15


def find_numbers(words: Sequence[str], journal: str) -> list[int]:
    """The numbers of these jobs. The journal is read only when one goes by its name."""
    if all(_is_number(word) for word in words):
        return [int(word) for word in words]
    state = runs.load(journal)
    return [int(word) if _is_number(word) else find_job(state, word).job.number for word in words]


def find_job(state: RunState, word: str) -> JobState:
    """The job that goes by that; of several with one name the last."""
    if _is_number(word) and int(word) in state.jobs:
        return state.jobs[int(word)]
    for each in reversed(state.jobs.values()):
        if each.job.name == word:
            return each
    if _is_number(word) and int(word) in state.refused:
        raise UserError(f"job {word} of run {state.run} never was one: its line was refused")
    raise UserError(
        f"run {state.run} has no job '{safe(word)}'; 'simple_gpu_scheduler history {state.run}' lists those that it has"
    )


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS
