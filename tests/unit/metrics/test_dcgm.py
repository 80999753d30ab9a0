"""The files for dcgm-exporter, in a directory where others have files too."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.metrics.dcgm import JobMap, jobs_by_gpu
from simple_gpu_scheduler.metrics.runs import ActiveRun
from simple_gpu_scheduler.metrics.totals import JobTotals, RunFold, Running

RUN = "20261118-180219-2b4a4e"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "map"
    path.mkdir()
    return path


@pytest.fixture
def job_map(directory: Path) -> Iterator[JobMap]:
    opened = JobMap(str(directory))
    yield opened
    opened.close()


def files(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def test_jobs_are_named_by_run_and_number_and_gpus_by_their_index() -> None:
    fold = RunFold(JobTotals())
    fold.run = RUN
    fold.running = {7: Running(1, ("GPU-b", "0"), 0.0), 2: Running(1, ("0",), 0.0), 9: Running(1, ("1:0",), 0.0)}
    names = {"GPU-b": ("1", "GPU-b")}
    found = jobs_by_gpu([ActiveRun("", fold)], lambda gpu: names.get(gpu, (gpu, "")))
    assert found == {"0": [f"{RUN}.2", f"{RUN}.7"], "1": [f"{RUN}.7"]}


def test_files_say_what_runs_now_and_nothing_is_written_twice(directory: Path, job_map: JobMap) -> None:
    assert job_map.write({"0": [f"{RUN}.1", f"{RUN}.2"], "1": [f"{RUN}.3"]}) == []
    assert files(directory) == {"0": f"{RUN}.1\n{RUN}.2\n", "1": f"{RUN}.3\n"}
    before = (directory / "1").stat().st_ino
    job_map.write({"1": [f"{RUN}.3"]})
    assert files(directory) == {"1": f"{RUN}.3\n"}
    assert (directory / "1").stat().st_ino == before
    (directory / "1").unlink()
    job_map.write({"1": [f"{RUN}.3"]})
    assert files(directory) == {"1": f"{RUN}.3\n"}, "somebody had cleaned up"
    job_map.close()
    assert files(directory) == {}
    job_map._fd = os.open(directory, os.O_RDONLY)


def test_what_is_not_ours_is_said_once_and_left_alone(directory: Path, job_map: JobMap) -> None:
    (directory / "0").write_text("slurm-1\n")
    (directory / "1").mkdir()
    (directory / "2").symlink_to(directory.parent / "elsewhere")
    (directory / "3").write_text(f"{RUN}.1\n")
    os.link(directory / "3", directory.parent / "second")
    jobs = {gpu: [f"{RUN}.1"] for gpu in "0123"}
    problems = job_map.write(jobs)
    assert sorted(problems) == [
        f"{directory}/{gpu}: it was not written by this program and is left alone" for gpu in "0123"
    ]
    assert job_map.write(jobs) == []
    assert (directory / "0").read_text() == "slurm-1\n"
    assert not (directory.parent / "elsewhere").exists()
    (directory / "0").unlink()
    job_map.write({"0": [f"{RUN}.2"]})
    assert (directory / "0").read_text() == f"{RUN}.2\n"


NAMES = st.sampled_from(["0", "1", "12", "2.0", "-1", "x", "0.prom", "00", "1.", ".5", "README"])
TEXTS = st.one_of(
    st.just(f"{RUN}.4\n"),
    st.just(f"{RUN}.4"),
    st.just(""),
    st.just("slurm-1\n"),
    st.just(f"{RUN}.4\nother\n"),
    st.text(),
)
JOBS = st.dictionaries(st.sampled_from(["0", "1", "12"]), st.lists(st.just(f"{RUN}.9"), min_size=1, max_size=2))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(there=st.dictionaries(NAMES, TEXTS), steps=st.lists(JOBS, max_size=4))
def test_no_file_of_others_is_ever_changed_or_removed(
    directory: Path, there: dict[str, str], steps: list[dict[str, list[str]]]
) -> None:
    for path in directory.iterdir():
        path.unlink()
    for name, text in there.items():
        (directory / name).write_bytes(text.encode("utf-8", "replace"))
    left = {"0", "1", "12", "2.0", "00"}  # what an exporter of ours may have left has one of these names
    theirs = {
        name: (directory / name).read_bytes() for name in there if name not in left or there[name] != f"{RUN}.4\n"
    }
    job_map = JobMap(str(directory))
    for jobs in steps:
        job_map.write(jobs)
        assert {name: (directory / name).read_bytes() for name in theirs} == theirs
        ours = {path.name for path in directory.iterdir()} - theirs.keys()
        assert ours == jobs.keys() - theirs.keys()
    job_map.close()
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == theirs


def test_a_directory_that_cannot_be_used_is_a_sentence(directory: Path) -> None:
    (directory / "link").symlink_to(directory)
    for path, problem in [
        ("missing", "No such file or directory"),
        ("link", "it is a symbolic link; name the directory"),
    ]:
        with pytest.raises(UserError, match=problem):
            JobMap(str(directory / path))
