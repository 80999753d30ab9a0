"""What has become of the jobs of a run so far, as far as a notifier is told of it. It knows no time and no thread."""

from collections import Counter

from simple_gpu_scheduler.events import Event, JobDropped, JobEnded, JobRequeued, LineRefused, TakenOver
from simple_gpu_scheduler.jobs import Kind
from simple_gpu_scheduler.notifying import JobEnd, Numbers, is_end, is_failure, told
from simple_gpu_scheduler.occasions import Occasion


class News:
    """`untold` are the ends that wait to be told, `failed` all jobs that have failed; both by job."""

    def __init__(self, on: frozenset[Occasion]) -> None:
        self._on = on
        self._kinds: Counter[Kind] = Counter()
        self._untold: dict[int, JobEnd] = {}
        self._failed: dict[int, JobEnd] = {}
        self._unsuccessful: dict[int, Kind] = {}  # also those that were cancelled, which may be tried again

    def __bool__(self) -> bool:
        return bool(self._untold)

    def take(self, event: Event) -> None:
        """One event."""
        if isinstance(event, JobEnded | JobDropped) and is_end(event):
            self._ended(event)
        elif isinstance(event, TakenOver):
            self._kinds.update({"succeeded": event.succeeded, "failed": event.failed, "not started": event.not_started})
            self._unsuccessful.update(dict.fromkeys(event.dropped, "not started"))
        elif isinstance(event, LineRefused):
            self._kinds["not started"] += 1
        elif isinstance(event, JobRequeued):
            self._untold.pop(event.job.number, None)
            self._failed.pop(event.job.number, None)
            kind = self._unsuccessful.pop(event.job.number, None)
            if kind:
                self._kinds[kind] -= 1

    def take_untold(self) -> list[JobEnd]:
        """All that is to be told, which is told with that."""
        ends = list(self._untold.values())
        self._untold.clear()
        return ends

    @property
    def failed(self) -> list[JobEnd]:
        """Those that have failed for good."""
        return list(self._failed.values())

    @property
    def numbers(self) -> Numbers:
        """How many jobs have ended how, in the words of the summary."""
        kinds = self._kinds
        return Numbers(kinds["succeeded"], kinds["failed"] + kinds["killed"], kinds["timed out"], kinds["not started"])

    def _ended(self, event: JobEnd) -> None:
        about = told(event)
        self._kinds[about.outcome.kind] += 1
        if about.outcome.kind != "succeeded":
            self._unsuccessful[about.job.number] = about.outcome.kind
        if is_failure(event):
            self._failed[about.job.number] = event
        if "each" in self._on or ("fail" in self._on and is_failure(event)):
            self._untold[about.job.number] = event
