"""`report`: what became of a run, in the terminal, as a page, as a chart, or as data for other programs."""

import csv
import io
import sys
import time

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.stdlib import json
from simple_gpu_scheduler.base.text import print_bytes, print_text, safe
from simple_gpu_scheduler.cli.declarations import Command, Option, Section, UsageError
from simple_gpu_scheduler.cli.options.which_run import RUN, also_run, with_run
from simple_gpu_scheduler.display.table import width_of_stdout
from simple_gpu_scheduler.journal.find import choose, is_elsewhere, look_at_records
from simple_gpu_scheduler.journal.samples import read_curves
from simple_gpu_scheduler.report.build import Basis, Report, build
from simple_gpu_scheduler.report.figure import is_picture
from simple_gpu_scheduler.report.measured import has_shared
from simple_gpu_scheduler.report.page import is_page, page
from simple_gpu_scheduler.report.text import NO_LOGS, has_logs, show, table
from simple_gpu_scheduler.system.files import check_replaceable, write_file

_EXAMPLES = r"""
simple_gpu_scheduler report
simple_gpu_scheduler report 2b4a4e --html report.html
simple_gpu_scheduler report --metric loss --html sweep.html --png sweep.png
simple_gpu_scheduler report --metric val/acc --csv > sweep.csv
simple_gpu_scheduler report --json | jq '.gpus[] | {gpu, share}'
"""
_HELP = """Summarise a run: what became of its jobs, how long they took, how busy the GPUs were, why jobs failed.

RUN is a run ID, a prefix of it or of its last part, or a journal file; the default is the newest run
in this directory, or else the newest of all.

The jobs' output can be used if it was kept: with --logs DIR, with --output group, tag or files, or with the live view.
--metric NAME finds the last number that each job printed after that name: "loss 0.5", "loss: 0.5", "loss=0.5", or
"loss": 0.5 in a line of JSON. Only the whole name matches, in the same case: train_loss is not loss.

Parameters are read from the commands: whatever varies among similar commands, by its name (--lr 0.1, lr=0.1) or its
position (#1). What only names the job, such as --output runs/17.json, is left out of comparisons. Results are ordered
by the metric, lowest first.

Files are readable only by you (mode 0600), since they show commands. An existing file is overwritten
only if it is empty, an earlier report (--html), or a PNG image (--png). Images need matplotlib:
simple_gpu_scheduler[plot].
"""
_SECTIONS = (
    Section(
        "Output (default: a summary)",
        (
            Option(["--html"], metavar="FILE", help="Write a page with charts and tables, for a browser."),
            Option(["--png"], metavar="FILE", help="Write a chart of what ran when on which GPU."),
            Option(["--csv", "as_csv"], is_flag=True, help="Print a table with one row per job."),
            Option(["--json", "as_json"], is_flag=True, help="Print all of it as JSON."),
        ),
    ),
    Section(
        "Metric",
        (Option(["--metric"], default="", metavar="NAME", help="The name of a number that the jobs print."),),
    ),
)


def _report(run: str | None, html: str | None, png: str | None, as_csv: bool, as_json: bool, metric: str) -> int:
    if as_csv and as_json:
        raise UsageError("--csv and --json exclude each other")
    _check(html, png)
    report = _build(run or "", metric, with_curves=as_json or html is not None or png is not None)
    made = []  # all before the first is written
    if html is not None:
        made.append((html, _page(report)))
    if png is not None:
        made.append((png, _figure(report)))
    _write(made)
    if metric and (made or as_json or as_csv) and not any(job["result"] is not None for job in report["jobs"]):
        print(f"no log has a number after '{_safe(metric)}'" if has_logs(report) else NO_LOGS, file=sys.stderr)
    if as_json:
        print_text(json.dumps(report, allow_nan=False))
    elif as_csv:
        _print_csv(report)
    elif not made:
        _show(report)
    return 0


def _check(html: str | None, png: str | None) -> None:
    """Refuse, before any work, to overwrite what is no earlier report: jobs.txt is quickly typed."""
    if html is not None:
        check_replaceable(html, is_page, "a report")
    if png is not None:
        check_replaceable(png, is_picture, "a PNG image")


def _build(word: str, metric: str, *, with_curves: bool) -> Report:
    """The curves take a second to read, and a summary needs them only for GPUs that jobs shared."""
    journal = choose(word)
    seen, records = look_at_records(journal)
    is_running = seen.is_alive or seen.is_kept
    is_unseen = not is_running and is_elsewhere(seen.state) and not seen.state.ended
    runs_jobs = is_running or is_unseen
    basis = Basis(
        seen.state, records, seen.standing, seen.is_alive, runs_jobs, time.time(), __version__, metric, is_unseen
    )
    return build(basis._replace(curves=read_curves(journal) if with_curves or has_shared(records) else {}))


def _page(report: Report) -> bytes:
    return page(report).encode()


def _figure(report: Report) -> bytes:
    from simple_gpu_scheduler.report.figure import draw  # noqa: PLC0415 - half a second to load

    return draw(report)


def _write(made: list[tuple[str, bytes]]) -> None:
    for path, data in made:
        write_file(path, data)
        print(f"wrote {_safe(path)}", file=sys.stderr)


def _show(report: Report) -> None:
    print_text("\n".join(show(report, width_of_stdout())))


def _print_csv(report: Report) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table(report))
    print_bytes(text.getvalue().encode("utf-8", "backslashreplace"))


def _safe(text: str) -> str:
    return safe(text).encode("utf-8", "backslashreplace").decode()


report_command = Command(
    "report",
    callback=with_run(_report),
    help=_HELP,
    argument=RUN,
    others=[also_run("the newest run in this directory, or else of all")],
    sections=_SECTIONS,
    examples=_EXAMPLES,
)
