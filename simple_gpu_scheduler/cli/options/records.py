"""What is kept of a run."""

from simple_gpu_scheduler.base.values import Any
from simple_gpu_scheduler.cli.declarations import Option, Section, UsageError, Whole
from simple_gpu_scheduler.engines import ENGINES
from simple_gpu_scheduler.journal import RecordOptions

SECTION = Section(
    "Records",
    (
        Option(["--joblog"], metavar="FILE", help="Write one row per job to this file, in GNU parallel's columns."),
        Option(
            ["--journal"], metavar="FILE", help="Keep the run's journal in this file.  [default: with your other runs]"
        ),
        Option(
            ["--no-journal"],
            is_flag=True,
            help="Keep no journal: the run cannot be resumed, and the other commands do not see it.",
        ),
        Option(
            ["--no-samples"],
            is_flag=True,
            envvar="SGS_NO_SAMPLES",
            help="Do not measure how jobs use their GPUs and the CPU (see 'report').",
        ),
        Option(
            ["--textfile"],
            metavar="FILE.prom",
            help="Write metrics to FILE.prom while the run lasts, for node_exporter's textfile collector (see "
            "'metrics').",
        ),
        Option(
            ["--keep-runs"],
            kind=Whole(1),
            metavar="N",
            envvar="SGS_KEEP_RUNS",
            default=200,
            help="Keep the journals and logs of the last N runs, and of older ones that could still be resumed.  "
            "[default: 200]",
        ),
        Option(
            ["--keep"], is_flag=True, help="Keep this run's journal and logs until you delete them with 'clean RUN'."
        ),
    ),
)


def take_textfile(typed: dict[str, Any]) -> str | None:
    """The file of `--textfile`, taken out of all that was typed."""
    textfile: str | None = typed.pop("textfile")
    if textfile == "":
        raise UsageError("--textfile is empty; is a shell variable unset?")
    if textfile and (typed["no_journal"] or typed["dry_run"] or ENGINES[typed["engine"]].runs_nothing):
        raise UsageError("--textfile shows what a journal records: leave out --no-journal, --dry-run and --engine.")
    return textfile


def take_records(typed: dict[str, Any], engine: str) -> RecordOptions:
    """What these options say, taken out of all that was typed."""
    options = RecordOptions(**{name: typed.pop(name) for name in RecordOptions._fields})
    if options.keep and options.no_journal:
        raise UsageError("--keep needs the journal that --no-journal turns off; choose one.")
    if options.journal and ENGINES[engine].runs_nothing:
        raise UsageError(f"--journal keeps what was run, and --engine {engine} runs nothing.")
    return options
