"""Checks whether a machine is fit for the program: facts about it, and what to do about them."""

from simple_gpu_scheduler.base.values import Literal, NamedTuple

# `FAIL`: a promise of the program does not hold here. `warn`: something works less well than it could.
Grade = Literal["ok", "warn", "FAIL"]


class Check(NamedTuple):
    """One line: what was looked at, what was found, and what to do about it."""

    name: str
    grade: Grade
    found: str
    advice: str = ""
