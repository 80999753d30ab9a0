"""The sink that finishes logs."""

from pathlib import Path

from simple_gpu_scheduler.base.jobs import SUCCESS, Attempt, Job, Place
from simple_gpu_scheduler.events import JobEnded, JobStarted, StallSeen, StartRefused
from simple_gpu_scheduler.output.log_file import create, header
from simple_gpu_scheduler.output.sink import Logs, Printed

ATTEMPT = Attempt(Job(1, b"true", Place(1)), 1, ("0",), (0,))


class Shown:
    problem = ""

    def __init__(self) -> None:
        self.printed: list[Printed] = []

    def started(self, attempt: Attempt, log: str, start: int) -> None:
        pass

    def ended(self, printed: Printed) -> None:
        self.printed.append(printed)

    def close(self) -> None:
        pass


def test_an_attempt_that_the_system_refused_leaves_nothing_in_the_log(tmp_path: Path) -> None:
    log, shown = tmp_path / "0001.log", Shown()
    sink = Logs(lambda _job: str(log), shown, failed_only=False)
    for _ in range(2):
        sink.take(JobStarted(ATTEMPT, str(log)))
        create(str(log), header(ATTEMPT, "run", 0.0))
        sink.take(StartRefused(ATTEMPT, "no process"))
        assert not log.exists()
    sink.take(JobStarted(ATTEMPT, str(log)))
    create(str(log), header(ATTEMPT, "run", 0.0))
    sink.take(JobEnded(ATTEMPT, SUCCESS, 0.0, 1.0, True))
    assert log.read_bytes().count(b"attempt 1") == 1
    assert [each.end == each.start for each in shown.printed] == [True, True, False]
    second = ATTEMPT._replace(number=2)
    whole = log.read_bytes()
    sink.take(JobStarted(second, str(log)))
    create(str(log), header(second, "run", 0.0))
    sink.take(StartRefused(second, "no process"))
    assert log.read_bytes() == whole


def test_what_was_written_to_the_log_of_a_stalled_attempt_is_no_part_of_what_it_printed(tmp_path: Path) -> None:
    log, shown = tmp_path / "0001.log", Shown()
    sink = Logs(lambda _job: str(log), shown, failed_only=False)
    for number in (1, 2):
        attempt = ATTEMPT._replace(number=number)
        sink.take(JobStarted(attempt, str(log)))
        create(str(log), header(attempt, "run", 0.0))
        if number == 1:
            sink.take(StallSeen(attempt, "it hangs", log=str(log), written=(100, 120)))
            sink.take(StallSeen(attempt, "its GPU is idle", log=str(log)))
        sink.take(JobEnded(attempt, SUCCESS, 0.0, 1.0, True))
    assert [list(each.gaps) for each in shown.printed] == [[(100, 120)], []]
