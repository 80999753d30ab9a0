"""`report`: what became of a run, in the terminal, as a page, as a chart, or as data for other programs."""

import csv
import io
import os
import sys
import time

from simple_gpu_scheduler import __version__
from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import json, shlex, suppress
from simple_gpu_scheduler.base.text import print_bytes, print_text, safe
from simple_gpu_scheduler.base.values import Any, Callable, NamedTuple
from simple_gpu_scheduler.cli.declarations import Argument, Command, Option, Section, UsageError
from simple_gpu_scheduler.cli.options.order import choose_policy
from simple_gpu_scheduler.cli.options.which_run import also_run, with_run
from simple_gpu_scheduler.display.table import width_of_stdout
from simple_gpu_scheduler.journal.find import choose, find_job, is_elsewhere, look_at_records
from simple_gpu_scheduler.journal.run_state import RunState
from simple_gpu_scheduler.journal.samples import read_curves
from simple_gpu_scheduler.report.build import Basis, Report, build
from simple_gpu_scheduler.report.figure import is_picture
from simple_gpu_scheduler.report.job_text import show_one
from simple_gpu_scheduler.report.measured import has_shared
from simple_gpu_scheduler.report.page import is_page, page
from simple_gpu_scheduler.report.pictures import PICTURES, draw_pictures
from simple_gpu_scheduler.report.text import NO_LOGS, has_logs, show, table
from simple_gpu_scheduler.system.files import check_replaceable, write_file

_EXAMPLES = r"""
simple_gpu_scheduler report
simple_gpu_scheduler report 2b4a4e --html report.html
simple_gpu_scheduler report --metric loss --html sweep.html --png sweep.png
simple_gpu_scheduler report 17
simple_gpu_scheduler report 2b4a4e --job 17 --png pictures/
simple_gpu_scheduler report --metric val/acc --csv > sweep.csv
simple_gpu_scheduler report --json | jq '.gpus[] | {gpu, share}'
simple_gpu_scheduler report --prometheus http://localhost:9090 --html report.html
"""
_HELP = """Summarise a run: what became of its jobs, how long they took, how busy the GPUs were, which jobs wasted a
GPU, why jobs failed.

RUN is a run ID, a prefix of it or of its last part, or a journal file; the default is the newest run
in this directory, or else the newest of all. A number of up to 5 digits is a job of the newest run:
report 17 is short for report --job 17, and tells all about this job.

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
_MOST_DIGITS = 5
_OTHER_PICTURES = (".avif", ".bmp", ".emf", ".eps", ".gif", ".heic", ".jpeg", ".jpg", ".svg", ".tif", ".tiff", ".webp")
_DOCUMENTS = (".doc", ".docx", ".htm", ".html", ".odp", ".odt", ".pdf", ".pgf", ".ppt", ".pptx", ".ps")
_SECTIONS = (
    Section(
        "Which job",
        (Option(["--job"], metavar="JOB", help="Only this job, by number or name: what it did to its GPUs, in full."),),
    ),
    Section(
        "Output (default: a summary)",
        (
            Option(["--html"], metavar="FILE", help="Write a page with charts and tables, for a browser."),
            Option(
                ["--png"],
                metavar="FILE|DIR/",
                help="Write a chart of what ran when on which GPU; or, into a directory, four pictures: utilisation, "
                "memory copies, temperature and power over time.",
            ),
            Option(["--csv", "as_csv"], is_flag=True, help="Print a table with one row per job."),
            Option(["--json", "as_json"], is_flag=True, help="Print all of it as JSON."),
        ),
    ),
    Section(
        "Metric",
        (Option(["--metric"], default="", metavar="NAME", help="The name of a number that the jobs print."),),
    ),
    Section(
        "Prometheus",
        (
            Option(
                ["--prometheus"],
                metavar="URL",
                help="Take the figures and curves of GPUs from the Prometheus at this address, which scrapes "
                "dcgm-exporter or simple_gpu_scheduler metrics.",
            ),
            Option(
                ["--selector"],
                metavar="MATCHERS",
                help="Use only series with these labels, such as 'cluster=\"a\"'.",
            ),
        ),
    ),
)


class ReportOptions(NamedTuple):
    """What was asked for."""

    run: str
    job: str | None
    html: str | None
    png: str | None
    as_csv: bool
    as_json: bool
    metric: str
    prometheus: str | None
    selector: str | None

    @property
    def needs_curves(self) -> bool:
        """The curves take a second to read, and a summary needs them only for GPUs that jobs shared."""
        return self.as_json or any(each is not None for each in (self.html, self.png, self.job))


def _call(run: str | None, named: str | None, **typed: Any) -> int:
    options = ReportOptions("", **typed)
    if options.as_csv and options.as_json:
        raise UsageError("--csv and --json exclude each other")
    if options.job == "":
        raise UsageError("JOB is empty; is a shell variable unset?")
    if options.selector is not None and options.prometheus is None:
        raise UsageError("--selector chooses among the series of a Prometheus: add --prometheus URL")
    if run is not None and _is_job(run):
        if options.job is not None:
            job = _safe(options.job)
            raise UsageError(
                f"two jobs are given, {run} and --job {job}; for a run whose ID begins with {run}: --run {run}"
            )
        run, options = None, options._replace(job=run)
    return with_run(lambda run: _report(options._replace(run=run or "")))(run=run, named=named)


def _is_job(word: str) -> bool:
    """By its looks alone, so that it means the same tomorrow; nobody tells runs apart by so few digits."""
    return word.isascii() and word.isdigit() and len(word) <= _MOST_DIGITS


def _report(asked: ReportOptions) -> int:
    html, png, as_csv, as_json, metric = asked.html, asked.png, asked.as_csv, asked.as_json, asked.metric
    _check(html, png)
    report = _build(asked)
    made = []  # all before the first is written
    if html is not None:
        made.append((html, _page(report)))
    if png is not None:
        made += _pictures(png, report) if _is_directory(png) else [(png, _figure(report))]
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
    stem, suffix = os.path.splitext(png or "")
    if png and suffix.lower() in (*_OTHER_PICTURES, *_DOCUMENTS) and not _is_directory(png):
        raise UserError(f"--png writes PNG; name it {_safe(stem)}.png")
    for path in _paths(png) if png is not None else ():
        check_replaceable(path, is_picture, "a PNG image")


def _paths(png: str) -> list[str]:
    return [os.path.join(png, each.file) for each in PICTURES] if _is_directory(png) else [png]


def _is_directory(png: str) -> bool:
    return png.endswith("/") or os.path.isdir(png)


def _build(asked: ReportOptions) -> Report:
    journal = _journal(asked.run)
    seen, records = look_at_records(journal)
    is_running = seen.is_alive or seen.is_kept
    is_unseen = not is_running and is_elsewhere(seen.state) and not seen.state.ended
    runs_jobs = is_running or is_unseen
    basis = Basis(
        seen.state, records, seen.standing, seen.is_alive, runs_jobs, time.time(), __version__, asked.metric, is_unseen
    )
    job = None if asked.job is None else _number(seen.state, asked.job)
    curves = read_curves(journal) if asked.needs_curves or asked.prometheus or has_shared(records) else {}
    basis = basis._replace(curves=curves, job=job)
    if asked.prometheus is not None:
        basis = _ask_prometheus(basis, asked.prometheus, asked.selector)
    return build(basis._replace(replay=_replay(seen.state)))


def _replay(state: RunState) -> Callable[[int], float]:
    """It is called only if jobs could have shared GPUs."""

    def seconds(jobs_per_gpu: int) -> float:
        from simple_gpu_scheduler.simulation.rerun import rerun  # noqa: PLC0415 - 20 ms

        return rerun(state, choose_policy("fifo"), jobs_per_gpu)

    return seconds


def _ask_prometheus(basis: Basis, url: str, selector: str | None) -> Basis:
    """With the figures and curves that it has."""
    from simple_gpu_scheduler.report.prometheus import api, collection  # noqa: PLC0415 - an HTTP client, rarely used
    from simple_gpu_scheduler.report.prometheus.selector import parse_selector  # noqa: PLC0415 - as above

    try:
        address = api.parse_address(url)
    except ValueError as error:  # the address may contain a password
        raise UserError(f"the value of --prometheus is wrong: {error}") from None
    try:
        matchers = "" if selector is None else parse_selector(selector)
    except ValueError as error:
        raise UserError(f"the value of --selector is wrong: {_safe(str(error))}") from None
    collected = collection.collect(api.PrometheusApi(address), basis, matchers)
    for note in collected.notes:
        print(_safe(note), file=sys.stderr)
    return collected.into(basis)


def _number(state: RunState, word: str) -> int:
    try:
        return find_job(state, word).job.number
    except UserError as error:
        if not _is_job(word):
            raise
        raise UserError(f"{error}; for a run whose ID begins with {word}: --run {word}") from None


def _journal(word: str) -> str:
    """Of the run; if there is none, the word may be a job of the newest run."""
    try:
        return choose(word)
    except UserError as error:
        if not word or "/" in word or not _is_named(word):
            raise
        raise UserError(f"{error}; for the job named {_safe(word)}: --job {_safe(shlex.quote(word))}") from None


def _is_named(word: str) -> bool:
    """Whether a job of the newest run has this name."""
    with suppress(UserError):
        return find_job(look_at_records(choose(""))[0].state, word).job.name == word
    return False


def _if_extra(word: str) -> str:
    return f"for a job of this run: --job {word}" if _is_job(word) else ""


def _page(report: Report) -> bytes:
    return page(report).encode()


def _figure(report: Report) -> bytes:
    from simple_gpu_scheduler.report.figure import draw  # noqa: PLC0415 - half a second to load

    return draw(report)


def _pictures(directory: str, report: Report) -> list[tuple[str, bytes]]:
    if not report["lanes"]:
        what = f"job {report['job']}" if report["job"] is not None else f"run {_safe(report['run']['id'])}"
        raise UserError(f"no GPU was measured in {what}, so there is nothing to draw; --png FILE shows when jobs ran")
    made = draw_pictures(report)
    for missing in [each for each in PICTURES if each.file not in made]:
        print(f"{missing.file} is not written: no GPU reports this quantity", file=sys.stderr)
    try:
        os.makedirs(directory, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the directory {_safe(directory)}: {error.strerror}") from None
    return [(os.path.join(directory, name), data) for name, data in made.items()]


def _write(made: list[tuple[str, bytes]]) -> None:
    for path, data in made:
        write_file(path, data)
        print(f"wrote {_safe(path)}", file=sys.stderr)


def _show(report: Report) -> None:
    shown = show if report["job"] is None else show_one
    print_text("\n".join(shown(report, width_of_stdout())))


def _print_csv(report: Report) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table(report))
    print_bytes(text.getvalue().encode("utf-8", "backslashreplace"))


def _safe(text: str) -> str:
    return safe(text).encode("utf-8", "backslashreplace").decode()


report_command = Command(
    "report",
    callback=_call,
    help=_HELP,
    argument=Argument("run", "[RUN|JOB]", is_many=False),
    others=[also_run("the newest run in this directory, or else of all")],
    sections=_SECTIONS,
    examples=_EXAMPLES,
    if_extra=_if_extra,
)
