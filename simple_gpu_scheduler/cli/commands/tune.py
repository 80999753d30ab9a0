"""`tune`: which policy suits a workload best, and a policy learned from it."""

import gc
import os
import sys

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import json
from simple_gpu_scheduler.base.text import print_text, safe
from simple_gpu_scheduler.base.values import Any, NamedTuple, Sequence
from simple_gpu_scheduler.cli.declarations import Command, Option, Section, UsageError
from simple_gpu_scheduler.cli.options import workload
from simple_gpu_scheduler.cli.options.order import choose_policy
from simple_gpu_scheduler.scheduling.policies.learned import Learned, Weights, show_weights
from simple_gpu_scheduler.scheduling.policies.names import LEARNED, Chosen
from simple_gpu_scheduler.simulation.compare import Site, compare
from simple_gpu_scheduler.simulation.learn.lessons import Exam, School, school_of
from simple_gpu_scheduler.simulation.learn.search import START, learn
from simple_gpu_scheduler.simulation.measures import measure
from simple_gpu_scheduler.simulation.scenario import HISTORY, Scenario
from simple_gpu_scheduler.simulation.significance import standing
from simple_gpu_scheduler.simulation.simulate import Workload
from simple_gpu_scheduler.simulation.text import heading, introduction, row
from simple_gpu_scheduler.simulation.tune import Tuned, in_parts, settings, tune
from simple_gpu_scheduler.simulation.tune_text import advice, to_json
from simple_gpu_scheduler.system.files import replace_file

from .simulate import check_directory

_BASE = "sjf"
_EXAMPLES = r"""
simple_gpu_scheduler tune
simple_gpu_scheduler tune trace.csv --gpus 8
simple_gpu_scheduler tune trace.csv --gpus 8 --learn weights.json
simple_gpu_scheduler tune --synthetic "jobs=20 gap=25 time=10-1000" --gpus 2 --repeat 2000 --learn weights.json
"""
_HELP = """Replay a workload under every policy, with several settings, and say which has the shortest mean wait.

TRACE is as for simulate; the default is all your past runs. The result says how much shorter than under fifo the mean
wait would have been, what that would have cost (the longest wait), and how sure that is: the difference is measured in
ten parts of the workload (or in each workload of --synthetic), and ± is its standard error.

--learn FILE also trains a new policy on the first half of the workload, which takes less than a minute, tests it on the
other half, and says whether it beats the best of the others. Use it with --policy learned:FILE.

\b
--json: an object
  trace, jobs, gpus, estimates, remarks, parts, best, is_sure,
  policies: as in simulate, each also with
    difference, error (in seconds: mean wait compared with fifo), wins, may_starve
  learned: an array of exam, policy, wait, difference, error (with --learn)
"""
_OUTPUT = Section(
    "Output",
    (
        Option(["--learn"], metavar="FILE", help="Train a policy and keep its weights in this file."),
        Option(["--json", "as_json"], is_flag=True, help="Print a JSON object."),
    ),
)


def _tune(**options: Any) -> int:
    path, as_json, seed = options.pop("learn"), options.pop("as_json"), options["seed"]
    if options["trace"] is None and options["synthetic"] is None:
        options["trace"] = HISTORY
    if path is not None:
        _check_target(path)
    scenario = workload.take_scenario(options)
    school = None
    if path:
        school = _find_school(scenario, seed)
    gc.freeze()
    tuned = _replay(scenario, quiet=as_json)
    exams: Sequence[Exam] = ()
    if not as_json:
        print_text("\n".join(["", *advice(tuned, scenario.fair_by)]))
    if school:
        taught = _teach(school, scenario.site, tuned.best.policy, seed, path)
        exams = taught.exams
        if not as_json:
            print_text("\n".join(["", *_say_exams(taught, tuned.best.policy, path)]))
    if as_json:
        print_text(json.dumps(to_json(scenario, tuned, exams), indent=2))
    return 0


def _replay(scenario: Scenario, *, quiet: bool) -> Tuned:
    if not quiet:
        print_text("\n".join([*introduction(scenario), "", *heading()]))
    workloads, site = scenario.workloads, scenario.site
    results = []
    for result in compare(workloads, map(choose_policy, settings(workloads, site.label)), site):
        measures = measure(result.simulated, site.gpus)
        results.append((result.policy, measures, result.simulated))
        if not quiet:
            print_text(row(result.policy, measures))
            sys.stdout.flush()
    return tune(results)


class _Taught(NamedTuple):
    """The result: whether the weights differ from those of sjf, and the exams."""

    is_new: bool
    exams: Sequence[Exam]


def _check_target(path: str) -> None:
    """Check that the weights can be written there: only older weights are overwritten."""
    check_directory(path)
    if not os.path.lexists(path):
        return
    try:
        if os.path.isfile(path) and os.path.getsize(path):  # reading a pipe would block
            choose_policy(f"{LEARNED}:{path}")
        elif not os.path.isfile(path):
            raise UserError(f"cannot write {safe(path)}: it is not a regular file")
    except (UsageError, OSError):
        message = "that file is not a weights file and is not overwritten; choose another, or remove it first"
        raise UserError(f"--learn {safe(path)}: {message}") from None


def _find_school(scenario: Scenario, seed: int) -> School:
    """What to learn from; a UserError says that there is too little."""
    try:
        return school_of(scenario.workloads, scenario.site.gpus, seed)
    except ValueError as error:
        raise UserError(f"{safe(scenario.name)} has too little to learn from: {error}") from None


def _teach(school: School, site: Site, best: str, seed: int, path: str) -> _Taught:
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
    return _Taught(weights != START, exams)


def _say_exams(taught: _Taught, best: str, path: str) -> list[str]:
    """How it did, as lines for people."""
    kept = f"saved in {safe(path)} (--policy learned:{safe(path)})"
    if taught.is_new:
        lines = [f"Learned, and {kept}. On jobs it had not seen:"]
    else:
        nothing = f"Found nothing significantly better than {_BASE}"
        lines = [f"{nothing}, so the order of {_BASE} is {kept}. On the held-out jobs:"]
    lines += [f"  {exam.name}: {exam.standing.in_words('learned', exam.other)}" for exam in taught.exams]
    if all(exam.standing.is_surely_less for exam in taught.exams if exam.other == best):
        return [*lines, f"It is significantly better than {best} everywhere."]
    return [*lines, f"It is not significantly better than {best}; use that instead."]


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


tune_command = Command(
    "tune",
    callback=_tune,
    help=_HELP,
    argument=workload.TRACE,
    sections=(workload.SECTION, _OUTPUT),
    examples=_EXAMPLES,
)
