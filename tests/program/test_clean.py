"""`clean`, `--keep` and the DISK of `history`: what runs keep on disk, and which of it is deleted when."""

import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from simple_gpu_scheduler import events
from simple_gpu_scheduler.journal import disk, files
from tests.conftest import Program, until
from tests.support.runs import DONE, FIRST, SECOND, THIRD, ended, job, write

GPU = ("--gpus", "0", "--ignore-occupancy", "-q")
DAYS = 86_400


def runs_directory() -> Path:
    return Path(files.runs_directory(os.environ))


def names() -> list[str]:
    return sorted(path.name for path in runs_directory().iterdir())


def finished(run: str, days: float = 0) -> Path:
    path = write(run, events.JobsRead([job(1)]), *ended(job(1)), DONE)
    path.with_suffix(".input-0").write_bytes(b"x" * 10_000)
    logs = path.with_suffix(".logs")
    logs.mkdir()
    (logs / "0001.log").write_bytes(b"y" * 10_000)
    os.utime(path, (time.time() - days * DAYS,) * 2)
    path.parent.chmod(0o700)
    return path


def size_of(run: str) -> int:
    """As `du` counts."""
    paths = [path for path in runs_directory().rglob("*") if f"/{run}." in str(path)]
    return sum(path.lstat().st_blocks * 512 for path in paths)


def listed(program: Program) -> dict[str, dict[str, object]]:
    done = program.run("clean", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    return {row["run"]: row for row in json.loads(done.stdout)}


def clean(program: Program, *args: str, code: int = 0) -> tuple[Sequence[str], Sequence[str]]:
    done = program.run("clean", *args)
    assert done.returncode == code, done
    return done.stdout.decode().splitlines(), done.stderr.decode().splitlines()


def test_it_shows_what_each_run_keeps_and_deletes_nothing(program: Program) -> None:
    finished(FIRST, days=2)
    write(SECOND, events.JobsRead([job(1)]))
    program.run(*GPU, "--logs", "mine", "--journal", "my.jsonl", "--keep", stdin="echo x\n")
    before = names()
    found = listed(program)
    assert list(found[FIRST]) == ["run", "journal", "changed", "state", "kept", "disk", "elsewhere"]
    (third,) = found.keys() - {FIRST, SECOND}
    keys = "state", "kept", "disk", "elsewhere"
    assert [found[FIRST][key] for key in keys] == ["finished", False, size_of(FIRST), []]
    assert [found[SECOND][key] for key in keys] == ["died", False, size_of(SECOND), []]
    mine = [str(program.directory / name) for name in ("my.jsonl", "mine")]
    assert [found[third][key] for key in keys] == ["finished", True, size_of(third), mine]
    assert size_of(FIRST) >= 20_000

    (heading, *lines), _ = clean(program)
    assert re.split(r"\s{2,}", heading) == ["RUN", "LAST CHANGED", "STATE", "DISK", "ELSEWHERE"]
    assert [re.split(r"\s{2,}", line)[2] for line in lines[:3]] == ["finished, kept", "died", "finished"]
    assert re.fullmatch(r"3 runs, \d+ KiB total", lines[3])
    assert names() == before


def test_it_deletes_old_runs_but_none_that_is_active_kept_or_unfinished(program: Program) -> None:
    finished(FIRST, days=40)
    write(SECOND, events.JobsRead([job(1)]))
    os.utime(runs_directory() / f"{SECOND}.jsonl", (time.time() - 40 * DAYS,) * 2)
    finished(THIRD, days=20)
    assert clean(program, "--keep", THIRD) == ([], [])
    (program.directory / "jobs").write_text("touch here; while [ ! -e go ]; do sleep 0.01; done\n")
    active = program.start(*GPU, "jobs")
    until((program.directory / "here").exists)
    (id_of_active,) = (name[:22] for name in names() if name.endswith(".sock"))

    would = clean(program, "--older-than", "30d", "-n")
    size = disk.size_of(str(runs_directory()), disk.names_by_run(str(runs_directory()))[FIRST]) // 1024
    unfinished = f"not deleting run {SECOND}: it can still be resumed; to delete it, add --unfinished"
    assert would[0] == [f"would delete run {FIRST}, {size} KiB", f"would free {size} KiB"]
    assert [line.partition("clean: ")[2] for line in would[1]] == [unfinished]
    assert f"{FIRST}.jsonl" in names()
    assert clean(program, "--older-than", "30d")[0] == [f"deleted run {FIRST}, {size} KiB", f"freed {size} KiB"]
    assert not [name for name in names() if name.startswith(FIRST)]

    out, err = clean(program, "--all", "--unfinished")
    assert out[0].startswith(f"deleted run {SECOND}, ")
    assert sorted(line.partition("clean: ")[2] for line in err) == sorted(
        [
            f"not deleting run {id_of_active}: it is active",
            f"not deleting run {THIRD}: it is kept; to delete it, name it",
        ]
    )
    assert [line.partition("clean: ")[2] for line in clean(program, id_of_active, code=1)[1]] == [
        f"not deleting run {id_of_active}: it is active"
    ]
    out, err = clean(program, THIRD)
    assert (len(out), err) == (2, [])
    assert {name.partition(".")[0] for name in names()} == {id_of_active}
    (program.directory / "go").touch()
    assert active.wait(timeout=120) == 0


def test_an_unfinished_run_is_deleted_only_with_a_word_for_it(program: Program) -> None:
    write(FIRST, events.JobsRead([job(1)]))
    _, (left,) = clean(program, FIRST, code=1)
    assert left.endswith(f"not deleting run {FIRST}: it can still be resumed; to delete it, add --unfinished")
    clean(program, FIRST, "--unfinished")
    assert names() == []


def test_a_run_that_knows_how_far_it_read_a_growing_file_is_unfinished(program: Program) -> None:
    (program.directory / "jobs").write_text("touch ran\n")
    process = program.start(*GPU, "--follow", "jobs")
    until((program.directory / "ran").exists)
    process.terminate()
    process.wait(timeout=120)
    ((run, row),) = listed(program).items()
    assert row["state"] == "stopped"
    _, (left,) = clean(program, "--all")
    assert left.endswith(f"not deleting run {run}: it can still be resumed; to delete it, add --unfinished")


def test_what_lies_elsewhere_is_named_and_left(program: Program) -> None:
    program.run(*GPU, "--logs", "mine", "--journal", "my.jsonl", stdin="echo x\n")
    out, _ = clean(program, "my.jsonl")
    assert out[0].endswith(f"; not deleted: {program.directory / 'my.jsonl'}, {program.directory / 'mine'}")
    assert names() == []
    assert (program.directory / "my.jsonl").exists()
    assert (program.directory / "mine" / "0001.log").exists()
    refused = program.run("clean", "my.jsonl")
    assert refused.returncode == 2
    assert b"my.jsonl is not a run in " in refused.stderr


def test_no_link_is_followed_and_what_is_not_the_programs_stays(program: Program) -> None:
    precious = program.directory / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    finished(FIRST)
    finished(SECOND)
    runs = runs_directory()
    (runs / f"{FIRST}.input-1").symlink_to(precious / "file")
    (runs / f"{FIRST}.logs" / "link").symlink_to(precious)
    (runs / f"{FIRST}.more").symlink_to(precious)
    (runs / f"{FIRST}-mine").touch()
    (runs / f"{SECOND}.logs" / "sub").mkdir()
    assert size_of(FIRST) == listed(program)[FIRST]["disk"]
    _, (error,) = clean(program, FIRST, SECOND, code=1)
    assert re.search(rf"cannot delete \S+/{SECOND}\.logs of run {SECOND}: Is a directory$", error)
    assert (precious / "file").read_text() == "precious"
    assert {f"{FIRST}-mine", f"{SECOND}.jsonl", f"{SECOND}.logs"} == {*names()} - {f"{SECOND}.input-0"}
    assert SECOND in listed(program)


@pytest.mark.parametrize("way", ["at its start", "afterwards"])
def test_a_kept_run_and_its_logs_outlive_later_runs_and_do_not_count_among_them(program: Program, way: str) -> None:
    keep = ["--keep"] if way == "at its start" else []
    program.run(*GPU, "--output", "files", *keep, stdin="echo precious\n")
    run = names()[0][:22]
    if not keep:
        clean(program, "--keep", run)
    for _ in range(3):
        program.run(*GPU, "--output", "files", "--keep-runs", "1", stdin="echo x\n")
    assert len([name for name in names() if name.endswith(".jsonl")]) == 2
    assert b"\nprecious\n" in program.run("logs", "1", "--run", run).stdout
    assert (runs_directory() / f"{run}.keep").stat().st_mode & 0o777 == 0o600

    clean(program, "--no-keep", run)
    clean(program, "--no-keep", run)
    program.run(*GPU, "--keep-runs", "1", stdin="true\n")
    assert not [name for name in names() if name.startswith(run)]


def test_of_a_run_that_was_refused_no_mark_is_left(program: Program) -> None:
    (program.directory / "jobs").write_text("true\n")
    wrong = os.environ | {"SGS_LEASE_DIR": "relative"}
    done = program.run("--gpus", "0", "--ignore-occupancy", "--keep", "jobs", env=wrong)
    assert (done.returncode, b"not an absolute path" in done.stderr) == (2, True)
    assert names() == []


def test_what_makes_no_sense_is_refused(program: Program) -> None:
    finished(FIRST)
    for args, sentence in {
        ("-n",): "say which runs to delete: RUN..., --older-than DURATION or --all",
        ("--unfinished",): "say which runs to delete: RUN..., --older-than DURATION or --all",
        ("--keep",): "--keep and --no-keep require at least one RUN",
        ("--keep", "--no-keep", FIRST): "--keep and --no-keep exclude each other",
        ("--keep", "--all", FIRST): "--keep and --no-keep take RUNs, not --all or --older-than",
        ("--all", "--json"): "--json only lists runs; it cannot be combined with options that delete or keep them",
        ("--older-than", "soon"): "'soon' is not a duration",
        (THIRD,): f"no run matches '{THIRD}'",
    }.items():
        done = program.run("clean", *args)
        assert (done.returncode, done.stdout) == (2, b"")
        assert sentence in done.stderr.decode()
    done = program.run(*GPU, "--keep", "--no-journal", stdin="touch ran\n")
    assert done.returncode == 2
    assert b"--keep needs the journal that --no-journal turns off; choose one" in done.stderr
    assert not (program.directory / "ran").exists()
    assert listed(program).keys() == {FIRST}


def test_without_runs_there_is_nothing_to_show(program: Program) -> None:
    assert clean(program)[0][1:] == ["0 runs, 0 B total"]
    assert clean(program, "--all") == (["freed 0 B"], [])


def test_history_shows_what_each_run_keeps(program: Program) -> None:
    finished(FIRST)
    rows = json.loads(program.run("history", "--json").stdout)
    assert [row["disk"] for row in rows] == [size_of(FIRST)]
    heading, line = program.run("history").stdout.decode().splitlines()
    at = heading.index("DISK")
    assert line[at:].startswith(f"{-(-size_of(FIRST) // 1024)} KiB")


def test_runs_are_words_or_options_and_an_empty_one_is_no_run(program: Program) -> None:
    for run in (FIRST, SECOND, THIRD):
        finished(run)
    clean(program, FIRST, "--run", SECOND, "--run", FIRST)
    assert list(listed(program)) == [THIRD]
    for words in (("",), ("--run", "")):
        _, said = clean(program, *words, code=2)
        assert "RUN is empty; is a shell variable unset? (see" in said[0]
    assert list(listed(program)) == [THIRD]
