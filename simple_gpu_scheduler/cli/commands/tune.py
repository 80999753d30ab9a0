"""`tune`: which policy suits a workload best; and a policy learned from it."""

import gc
import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from simple_gpu_scheduler.base.text import print_text
from simple_gpu_scheduler.cli.click_extras import Command, Section
from simple_gpu_scheduler.cli.options.order import choose_policy
from simple_gpu_scheduler.cli.options.workload import take_scenario, trace_argument, workload_section
from simple_gpu_scheduler.simulation.compare import compare
from simple_gpu_scheduler.simulation.learn.lessons import Exam
from simple_gpu_scheduler.simulation.measures import measure
from simple_gpu_scheduler.simulation.scenario import HISTORY, Scenario
from simple_gpu_scheduler.simulation.text import heading, introduction, row
from simple_gpu_scheduler.simulation.tune import Tuned, settings, tune
from simple_gpu_scheduler.simulation.tune_text import advice, to_json

from .tune_learn import check_target, find_school, say_exams, teach

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
        click.Option(["--learn"], metavar="FILE", help="Train a policy and keep its weights in this file."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print a JSON object."),
    ),
)


def _tune(**options: Any) -> int:
    learn, as_json, seed = options.pop("learn"), options.pop("as_json"), options["seed"]
    if options["trace"] is None and options["synthetic"] is None:
        options["trace"] = HISTORY
    if learn is not None:
        check_target(learn)
    scenario = take_scenario(options)
    school = None
    if learn:
        school = find_school(scenario, seed)
    gc.freeze()
    tuned = _replay(scenario, quiet=as_json)
    exams: Sequence[Exam] = ()
    if not as_json:
        print_text("\n".join(["", *advice(tuned, scenario.fair_by)]))
    if school:
        taught = teach(school, scenario.site, tuned.best.policy, seed, learn)
        exams = taught.exams
        if not as_json:
            print_text("\n".join(["", *say_exams(taught, tuned.best.policy, learn)]))
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


tune_command = Command(
    "tune",
    trace_argument(),
    callback=_tune,
    help=_HELP,
    sections=(workload_section(), _OUTPUT),
    examples=_EXAMPLES,
)
