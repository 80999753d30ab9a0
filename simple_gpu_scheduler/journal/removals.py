"""Which runs `clean` deletes, and why it leaves others. Pure."""

from simple_gpu_scheduler.base.values import Collection, Iterable, NamedTuple, Sequence


class RunOnDisk(NamedTuple):
    """A run, what it keeps on disk in bytes, and when its journal last changed. `elsewhere` is not ours to delete."""

    run: str
    journal: str
    disk: int
    changed: float
    is_active: bool = False
    ending: str = "finished"
    is_kept: bool = False
    elsewhere: Sequence[str] = ()

    @property
    def state(self) -> str:
        """In a word."""
        return "active" if self.is_active else self.ending

    @property
    def is_unfinished(self) -> bool:
        """Whether it can be resumed."""
        return self.ending in ("stopped", "died")


class Unwanted(NamedTuple):
    """What may be deleted: the runs named, all runs, or those unchanged for this many seconds; unfinished ones too?"""

    named: Collection[str] = ()
    all_runs: bool = False
    older_than: float | None = None
    unfinished: bool = False


class Removals(NamedTuple):
    """The runs to delete, and those left although they were meant, each with the reason."""

    runs: Sequence[RunOnDisk]
    left: Sequence[tuple[RunOnDisk, str]]


def choose_removals(runs: Iterable[RunOnDisk], unwanted: Unwanted, now: float) -> Removals:
    """Active runs stay. Runs that can be resumed or are kept stay unless their deletion is requested explicitly."""
    meant = [run for run in runs if _is_meant(run, unwanted, now)]
    reasons = [(run, _why_left(run, unwanted)) for run in meant]
    return Removals([run for run, why in reasons if not why], [(run, why) for run, why in reasons if why])


def _is_meant(run: RunOnDisk, unwanted: Unwanted, now: float) -> bool:
    is_old = unwanted.older_than is not None and now - run.changed > unwanted.older_than
    return run.run in unwanted.named or unwanted.all_runs or is_old


def _why_left(run: RunOnDisk, unwanted: Unwanted) -> str:
    if run.is_active:
        return "it is active"
    if run.is_kept and run.run not in unwanted.named:
        return "it is kept; to delete it, name it"
    if run.is_unfinished and not unwanted.unfinished:
        return "it can still be resumed; to delete it, add --unfinished"
    return ""
