"""`simulate`: the result of each policy on a workload, as a table, as JSON, or as a picture."""

import gc
import os

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.extras import figure_maker
from simple_gpu_scheduler.base.stdlib import json
from simple_gpu_scheduler.base.text import print_text, safe
from simple_gpu_scheduler.base.values import Any, Iterator, Sequence
from simple_gpu_scheduler.cli.declarations import Command, Option, Section, UsageError
from simple_gpu_scheduler.cli.options import workload
from simple_gpu_scheduler.cli.options.order import choose_policy
from simple_gpu_scheduler.scheduling.policies import MAY_STARVE, POLICIES
from simple_gpu_scheduler.scheduling.policies.names import LEARNED, names
from simple_gpu_scheduler.simulation.compare import Result, compare
from simple_gpu_scheduler.simulation.measures import measure
from simple_gpu_scheduler.simulation.scenario import Scenario
from simple_gpu_scheduler.simulation.text import heading, introduction, row, to_json
from simple_gpu_scheduler.simulation.waits_figure import draw_waits
from simple_gpu_scheduler.system.files import replace_file

_EXAMPLES = r"""
simple_gpu_scheduler simulate trace.csv --gpus 8
simple_gpu_scheduler simulate trace.csv --gpus 8 --policy fifo aged:0.5 aged:2 hrrn --plot waits.svg
simple_gpu_scheduler simulate history --gpus 4 --json
simple_gpu_scheduler simulate --synthetic "jobs=20 gap=25 time=10-1000" --gpus 2 --repeat 2000
"""
_HELP = """Replay a workload under each policy, with the same scheduler that runs jobs and a simulated clock.

TRACE is a CSV file with the columns submit, duration, gpus (or procs) and optionally user, requested, priority and
command; a log in the Standard Workload Format (.swf); a run or its journal; `history` for all your runs; - for stdin.

WAIT is the time from a job's submission to its start, RESPONSE to its end; SLOWDOWN is the response divided by the
length (at least 10 s); MAKESPAN is the time from the first submission to the last end; USED is the share of the GPUs'
time in use; FAIR says how equal the users' mean slowdowns are (1: equal). The simulation assumes that nothing else uses
the GPUs and that no job fails.

\b
--json: an object
  trace, jobs, workloads, gpus, estimates, remarks,
  policies: an array of
    policy, jobs, wait, response, slowdown (each with mean, p50, p90, p99, max),
    makespan, utilisation, fairness

Times are in seconds.
"""
_POLICIES = Section(
    "Policies",
    (
        Option(
            ["--policy"],
            multiple=True,
            takes=lambda word: word.partition(":")[0] in (*POLICIES, LEARNED),
            example=f"--policy fifo aged hrrn; there are {names()}",
            metavar="POLICY...",
            help="The policies to compare, in this order.  [default: all but learned:FILE]",
        ),
    ),
)
_DISPLAY = Section(
    "Display",
    (
        Option(["--plot"], metavar="FILE", help="Draw the waits to this .png or .svg file; needs matplotlib."),
        Option(["--json", "as_json"], is_flag=True, help="Print a JSON object."),
    ),
)


def _simulate(**options: Any) -> int:
    policies = [choose_policy(name) for names in options.pop("policy") for name in names]
    policies = policies or [choose_policy(name) for name in POLICIES]
    plot, as_json = options.pop("plot"), options.pop("as_json")
    if plot is not None:
        check_plot(plot)
    scenario = workload.take_scenario(options)
    gc.freeze()
    results = compare(scenario.workloads, policies, scenario.site)
    kept = _show_json(scenario, results) if as_json else _show(scenario, results)
    if plot:
        plot_waits(plot, introduction(scenario)[0], kept)
    return 0


def _show(scenario: Scenario, results: Iterator[Result]) -> list[Result]:
    """A line for each as soon as it is known: with a long workload each takes a while."""
    print_text("\n".join([*introduction(scenario), "", *heading()]))
    kept = []
    for result in results:
        print_text(row(result.policy, measure(result.simulated, scenario.site.gpus)))
        kept.append(result)
    risky = [result.policy for result in kept if result.policy in MAY_STARVE]
    if risky:
        print_text(f"\nUnder {' and '.join(risky)} a job may wait forever while others keep arriving.")
    return kept


def _show_json(scenario: Scenario, results: Iterator[Result]) -> list[Result]:
    kept = list(results)
    shown = {
        "trace": scenario.name,
        "jobs": sum(map(len, scenario.workloads)),
        "workloads": len(scenario.workloads),
        "gpus": scenario.site.gpus,
        "estimates": scenario.estimates,
        "remarks": scenario.remarks,
        "policies": [to_json(each.policy, measure(each.simulated, scenario.site.gpus)) for each in kept],
    }
    print_text(json.dumps(shown, indent=2))
    return kept


simulate_command = Command(
    "simulate",
    callback=_simulate,
    help=_HELP,
    argument=workload.TRACE,
    sections=(workload.SECTION, _POLICIES, _DISPLAY),
    examples=_EXAMPLES,
)


_FORMS = (".png", ".svg")


def check_plot(path: str) -> None:
    """Check the file name, and that matplotlib is there, before an hour of simulation."""
    if os.path.splitext(path)[1] not in _FORMS:
        raise UsageError(f"--plot {safe(path)}: the file name must end in {' or '.join(_FORMS)}")
    check_directory(path)
    figure_maker()


def check_directory(path: str) -> None:
    """Check that the file can be written there."""
    if not os.path.basename(path):
        raise UserError(f"cannot write '{safe(path)}': it is not a file name")
    directory = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(directory):
        raise UserError(f"cannot write {safe(path)}: there is no such directory")
    if not os.access(directory, os.W_OK):
        raise UserError(f"cannot write {safe(path)}: you may not write to that directory")


def plot_waits(path: str, title: str, results: Sequence[Result]) -> None:
    """Draw the result of each policy."""
    picture = draw_waits(title, results, os.path.splitext(path)[1][1:])
    try:
        replace_file(path, picture)
    except OSError as error:
        raise UserError(f"cannot write {safe(path)}: {error.strerror}") from None
