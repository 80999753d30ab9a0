"""The journal: the append-only record of a run, one JSON object per line, and reading it back.

`records` turns events into lines, `read` lines into records, `run_state` records into what became of each job, `files`
knows where runs are kept, `append` writes. Its format is documented in `docs/journal.md`.
"""

from simple_gpu_scheduler.base.values import NamedTuple

VERSION = 1


class RecordOptions(NamedTuple):
    """The section "Records" of --help."""

    joblog: str | None = None
    journal: str | None = None
    no_journal: bool = False
    keep_runs: int = 200
    keep: bool = False
    no_samples: bool = False
