"""`tune --learn FILE`: trains a policy, tests it, and saves its weights."""

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

import click

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.cli.options.order import choose_policy
from simple_gpu_scheduler.scheduling.policies.learned import Learned, Weights, show_weights
from simple_gpu_scheduler.scheduling.policies.names import LEARNED, Chosen
from simple_gpu_scheduler.simulation.compare import Site, compare
from simple_gpu_scheduler.simulation.learn.lessons import Exam, School, school_of
from simple_gpu_scheduler.simulation.learn.search import START, learn
from simple_gpu_scheduler.simulation.scenario import Scenario
from simple_gpu_scheduler.simulation.significance import standing
from simple_gpu_scheduler.simulation.simulate import Workload
from simple_gpu_scheduler.simulation.tune import in_parts
from simple_gpu_scheduler.system.files import replace_file

from .simulate import check_directory

_BASE = "sjf"


class Taught(NamedTuple):
    """The result: whether the weights differ from those of sjf, and the exams."""

    is_new: bool
    exams: Sequence[Exam]


def check_target(path: str) -> None:
    """Check that the weights can be written there: only older weights are overwritten."""
    check_directory(path)
    if not os.path.lexists(path):
        return
    try:
        if os.path.isfile(path) and os.path.getsize(path):  # reading a pipe would block
            choose_policy(f"{LEARNED}:{path}")
        elif not os.path.isfile(path):
            raise UserError(f"cannot write {safe(path)}: it is not a regular file")
    except (click.UsageError, OSError):
        message = "that file is not a weights file and is not overwritten; choose another, or remove it first"
        raise UserError(f"--learn {safe(path)}: {message}") from None


def find_school(scenario: Scenario, seed: int) -> School:
    """What to learn from; a UserError says that there is too little."""
    try:
        return school_of(scenario.workloads, scenario.site.gpus, seed)
    except ValueError as error:
        raise UserError(f"{safe(scenario.name)} has too little to learn from: {error}") from None


def teach(school: School, site: Site, best: str, seed: int, path: str) -> Taught:
    """Train, write the weights, and compare them with the best one-knob policy and with sjf on held-out jobs."""
    is_shown = sys.stderr.isatty()
    try:
        weights = learn(school.lessons, site, seed, say=_say if is_shown else _quietly)
    except ValueError as error:
        raise UserError(f"cannot learn from this: {error}") from None
    if is_shown:
        _say("")
    _keep(path, weights)
    exams = [exam for name, workloads in school.exams for exam in _examine(name, workloads, weights, best, site)]
    return Taught(weights != START, exams)


def say_exams(taught: Taught, best: str, path: str) -> list[str]:
    """How it did, as lines for people."""
    kept = f"saved in {safe(path)} (--policy learned:{safe(path)})"
    if taught.is_new:
        lines = [f"Learned, and {kept}. On jobs it had not seen:"]
    else:
        lines = [f"Found nothing surely better than {_BASE}, so the order of {_BASE} is {kept}. On the held-out jobs:"]
    lines += [f"  {exam.name}: {exam.standing.in_words('learned', exam.other)}" for exam in taught.exams]
    if all(exam.standing.is_surely_less for exam in taught.exams if exam.other == best):
        return [*lines, f"It surely beats {best} everywhere."]
    return [*lines, f"It is not surely better than {best}; use that instead."]


def _examine(name: str, workloads: Sequence[Workload], weights: Weights, best: str, site: Site) -> list[Exam]:
    policies = [Chosen(LEARNED, lambda: Learned(weights)), *map(choose_policy, (best, _BASE))]
    (_, mine), *theirs = ((result.policy, in_parts(result.simulated)) for result in compare(workloads, policies, site))
    return [Exam(name, other, standing(mine.waits, parts.waits, mine.sizes)) for other, parts in theirs]


def _keep(path: str, weights: Weights) -> None:
    try:
        replace_file(os.path.abspath(path), show_weights(weights).encode())
    except OSError as error:
        raise UserError(f"cannot write {safe(path)}: {error.strerror}") from None


def _say(text: str) -> None:
    print(f"\r{text:<78}", end="\n" if not text else "", file=sys.stderr, flush=True)


def _quietly(_text: str) -> None:
    """Show no progress."""
