"""`report`: what became of a run, in the terminal, as a page, as a picture, or as data for other programs."""

import json
import shutil
import sys
import time
from typing import TYPE_CHECKING

import click

from simple_gpu_scheduler.base.text import print_bytes, print_text
from simple_gpu_scheduler.cli.click_extras import Command

if TYPE_CHECKING:
    from simple_gpu_scheduler.report.build import Report

_EXAMPLES = r"""
simple_gpu_scheduler report
simple_gpu_scheduler report 2b4a4e --html report.html
simple_gpu_scheduler report --metric loss --html sweep.html --png sweep.png
simple_gpu_scheduler report --metric val/acc --csv > sweep.csv
simple_gpu_scheduler report --json | jq '.gpus[] | {gpu, share}'
"""
_HELP = """Sum up a run: what became of its jobs, what took how long, how busy the GPUs were, and why jobs failed.

RUN is the id of a run, the begin of it or of its last part, or a journal's file; without one it is the newest, first
among those of this directory.

What jobs printed is there when it was kept, by --output files or --logs DIR. --metric NAME looks in it for the last
number that each job printed behind that name: "loss 0.5", "loss: 0.5", "loss=0.5" or "loss": 0.5 in a line of JSON. The
name is matched whole and as it is written; train_loss is another one than loss.

Parameters are read from the commands: what varies among those that do the same, by its name (--lr 0.1, lr=0.1), or by
its place (#1).

Files are readable for you alone, since they show commands. Pictures need matplotlib: simple_gpu_scheduler[plot].
"""
_SECTIONS = (
    ("What is made (without any: a summary)", ("html", "png", "as_csv", "as_json")),
    ("What is looked for", ("metric",)),
)


def _options() -> list[click.Parameter]:
    return [
        click.Argument(["run"], default="", metavar="[RUN]"),
        click.Option(["--html"], metavar="FILE", help="Write a page with charts and tables, for a browser."),
        click.Option(["--png"], metavar="FILE", help="Write a picture of what ran when on which GPU."),
        click.Option(["--csv", "as_csv"], is_flag=True, help="Print a table: a row for each job."),
        click.Option(["--json", "as_json"], is_flag=True, help="Print all of it as JSON."),
        click.Option(["--metric"], default="", metavar="NAME", help="The name of the number that jobs print."),
    ]


def _report(run: str, html: str | None, png: str | None, as_csv: bool, as_json: bool, metric: str) -> int:
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    report = _build(run, metric)
    made = []  # all before the first is written
    if html is not None:
        made.append((html, _page(report)))
    if png is not None:
        made.append((png, _figure(report)))
    _write(made)
    if metric and (made or as_json or as_csv) and not any(job["result"] is not None for job in report["jobs"]):
        from simple_gpu_scheduler.report.text import NO_LOGS, has_logs  # noqa: PLC0415 - as below

        print(f"no log has a number after '{_safe(metric)}'" if has_logs(report) else NO_LOGS, file=sys.stderr)
    if as_json:
        print_text(json.dumps(report, allow_nan=False))
    elif as_csv:
        _print_csv(report)
    elif not made:
        _show(report)
    return 0


def _build(word: str, metric: str) -> "Report":
    from simple_gpu_scheduler import __version__  # noqa: PLC0415 - not for --help
    from simple_gpu_scheduler.journal.find import choose, is_elsewhere, look_at_records  # noqa: PLC0415 - as above
    from simple_gpu_scheduler.report.build import Basis, build  # noqa: PLC0415 - as above

    seen, records = look_at_records(choose(word))
    lives = seen.is_alive or seen.is_kept
    is_unseen = not lives and is_elsewhere(seen.state) and not seen.state.ended
    goes_on = lives or is_unseen
    return build(
        Basis(seen.state, records, seen.standing, seen.is_alive, goes_on, time.time(), __version__, metric, is_unseen)
    )


def _page(report: "Report") -> bytes:
    from simple_gpu_scheduler.report.page import page  # noqa: PLC0415 - it reads the page's parts

    return page(report).encode()


def _figure(report: "Report") -> bytes:
    from simple_gpu_scheduler.report.figure import draw  # noqa: PLC0415 - half a second to load

    return draw(report)


def _write(made: list[tuple[str, bytes]]) -> None:
    from simple_gpu_scheduler.system.files import write_file  # noqa: PLC0415 - as above

    for path, data in made:
        write_file(path, data)
        print(f"wrote {_safe(path)}", file=sys.stderr)


def _show(report: "Report") -> None:
    from simple_gpu_scheduler.report.text import show  # noqa: PLC0415 - as above

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print_text("\n".join(show(report, width)))


def _print_csv(report: "Report") -> None:
    import csv  # noqa: PLC0415 - as above
    import io  # noqa: PLC0415 - as above

    from simple_gpu_scheduler.report.text import table  # noqa: PLC0415 - as above

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(table(report))
    print_bytes(text.getvalue().encode("utf-8", "backslashreplace"))


def _safe(text: str) -> str:
    from simple_gpu_scheduler.base.text import safe  # noqa: PLC0415 - as above

    return safe(text).encode("utf-8", "backslashreplace").decode()


report_command = Command(
    "report",
    params=_options(),
    callback=_report,
    help=_HELP,
    short_help="Sum up a run, also as a page or a picture.",
    sections=_SECTIONS,
    examples=_EXAMPLES,
)
