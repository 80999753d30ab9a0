"""What could make a resumed run do what nobody asked for: leftovers, refusals, hostile names, endless writers."""

import os
import signal
import subprocess
from pathlib import Path

from simple_gpu_scheduler.journal import files
from simple_gpu_scheduler.keeper.survivors import find_alive
from tests.conftest import SCHEDULER, UNMEASURED, Program, has_text, until

OURS = ("--gpus", "0", "--ignore-occupancy", "-q")


def runs(program: Program) -> list[Path]:
    """The journals, the newest first."""
    return [Path(path) for path in files.find_runs(str(program.directory / "state/simple_gpu_scheduler/runs"))]


def killed(program: Program, *args: str, stdin: int = subprocess.DEVNULL) -> None:
    """A run that is killed as soon as its first job has begun."""
    process = program.start(*OURS, *args, env=UNMEASURED, stdin=stdin, stdout=subprocess.DEVNULL)
    until((program.directory / "begun").exists, "its job has begun")
    process.kill()
    process.wait()


def test_what_is_left_of_a_deleted_journal_is_not_run(program: Program) -> None:
    program.run(*OURS, "--journal", "mine.jsonl", stdin="echo old >> out\n")
    (program.directory / "mine.jsonl").unlink()
    program.run(*OURS, "--journal", "mine.jsonl", stdin="echo new >> out\n")
    assert (program.directory / "out").read_text() == "old\nnew\n"


def test_two_pipes_of_a_run_are_kept_apart(program: Program) -> None:
    os.mkfifo(program.directory / "q")
    hold = os.open(program.directory / "q", os.O_RDWR)
    os.write(hold, b"touch begun; sleep 0.3; echo first >> out\n")
    killed(program, "--follow", "q")
    os.close(hold)
    process = program.start(*OURS, "--resume", "--no-follow", "-", env=UNMEASURED)
    program.feed(process, "echo typed >> out\n")
    assert process.wait(timeout=120) == 0
    assert sorted((program.directory / "out").read_text().split()) == ["first", "typed"]


def test_a_run_that_was_refused_is_none_to_resume(program: Program) -> None:
    (program.directory / "jobs").write_text("touch begun; sleep 0.2; echo done >> out\n")
    killed(program, "jobs")
    for wrong in (["--chdir", "nowhere"], ["--logs", "/dev/null/x"], ["--gpus", "0,99", "--cpu-slots", "x"]):
        assert program.run(*OURS, *wrong, "jobs").returncode == 2
    assert len(runs(program)) == 1
    resume = [*SCHEDULER, "--resume", "-q"]
    done = subprocess.run(resume, cwd=program.directory, stdin=subprocess.DEVNULL, check=False, timeout=120)
    assert done.returncode == 0
    assert (program.directory / "out").read_text() == "done\n"


def test_the_job_log_of_a_followed_file_is_kept_by_the_next_scheduler(program: Program) -> None:
    (program.directory / "queue").write_text("true\ntouch begun; sleep 0.2\n")
    killed(program, "--follow", "queue", "--joblog", "log")
    process = program.start(*OURS, "--follow", "queue", "--joblog", "log", env=UNMEASURED, stdin=subprocess.DEVNULL)
    until(has_text(program.directory / "log", "begun"), "the second job is logged")
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=120)
    rows = (program.directory / "log").read_text().splitlines()[1:]
    assert sorted(row.split("\t")[0] for row in rows) == ["1", "2"]


def test_an_endless_writer_does_not_keep_the_keeper_of_a_killed_scheduler(program: Program) -> None:
    reading, writing = os.pipe()
    endless = subprocess.Popen(["sh", "-c", "echo 'touch begun; sleep 0.2'; exec yes true"], stdout=writing)
    os.close(writing)
    killed(program, stdin=reading)
    os.close(reading)
    until(has_text(runs(program)[0], '"keeper alone"'), "its keeper says that it is alone")
    assert endless.wait(timeout=120) == -signal.SIGPIPE
    assert sum(path.stat().st_size for path in runs(program)[0].parent.glob("*.input-*")) < 8_000_000


def test_an_environment_that_looks_like_ours_and_is_not_is_passed_over() -> None:
    sleepers = [
        subprocess.Popen(["sleep", "60"], env={"SGS_TREE": tree})
        for tree in ("/RUN.x.y", "/RUN.", "/RUN.1", "/RUN.7.2")
    ]
    try:
        until(lambda: find_alive(b"RUN"), "one is found")
        assert list(find_alive(b"RUN")) == [(7, 2)]
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def test_a_journal_that_cannot_be_asked_about_is_not_pruned(tmp_path: Path) -> None:
    names = [f"2026010{day}-000000-000000.jsonl" for day in range(1, 5)]
    for name in names[:3]:
        (tmp_path / name).write_text("")
    (tmp_path / names[3]).mkdir()  # opening it for writing fails, and so does locking it
    (tmp_path / "20260101-000000-000000.input-0").write_text("")
    with files.opened(str(tmp_path / names[1])) as fd:
        assert files.lock(fd, files.SCHEDULER)
        files.prune(str(tmp_path), 1)
        assert sorted(path.name for path in tmp_path.iterdir()) == [names[1], names[3]]
