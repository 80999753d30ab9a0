"""`report` of a night: which jobs wasted a GPU, one job in full, and the pictures."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Program
from tests.program.test_report import REPORT, as_json, ask, refusal, told
from tests.support.night import RUN, night
from tests.support.nvml import StandIn, a_gpu


@pytest.fixture
def dark(program: Program, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in; the night is the only run of this user."""
    state = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    runs = state / "simple_gpu_scheduler" / "runs"
    runs.mkdir(parents=True, mode=0o700)
    night(40, 3, most_points=60).write(runs / f"{RUN}.jsonl")
    return program.directory


def test_one_command_tells_which_jobs_wasted_a_gpu_last_night(dark: Path) -> None:
    lines = told(cwd=dark).splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("GPU USE"))
    assert lines[at + 1].split()[:3] == ["WASTED", "JOB", "ON"]
    worst = as_json(cwd=dark)["worst"]
    assert [int(line.split()[2]) for line in lines[at + 2 : at + 7]] == worst[:5]


def test_json_has_lanes_and_figures_and_csv_their_columns(dark: Path) -> None:
    report = as_json(cwd=dark)
    assert [lane["gpu"] for lane in report["lanes"]] == ["0", "1", "2"]
    assert report["jobs"][0]["measured"]["gpus"][0]["utilization"]["mean"] > 0
    assert report["jobs"][39]["measured"] is None  # over within a second
    heading, *rows = told("--csv", cwd=dark).splitlines()
    place = heading.split(",").index("energy_joules")
    assert float(rows[0].split(",")[place]) == report["jobs"][0]["measured"]["energy"]
    assert rows[39].split(",")[place] == ""


def test_a_number_is_a_job_of_the_newest_run_and_never_a_run(dark: Path) -> None:
    assert told("3", cwd=dark).startswith(f"job 3 of run {RUN}: succeeded\n")
    assert told("--job", "3", "--run", RUN, cwd=dark) == told("3", "--run", "2026", cwd=dark) == told("3", cwd=dark)
    assert as_json("3", cwd=dark)["job"] == 3
    assert [job["job"] for job in as_json("--job", "3", cwd=dark)["jobs"]] == [3]
    assert "has no job '2026'" in refusal("2026", cwd=dark)  # as the year, with which all runs begin
    assert refusal("2026", cwd=dark).endswith("for a run whose ID begins with 2026: --run 2026")
    assert "two jobs are given" in refusal("3", "--job", "4", cwd=dark)
    assert "JOB is empty" in refusal("--job", "", cwd=dark)
    assert told("--run", "2026", cwd=dark) == told("202611", cwd=dark) == told(cwd=dark)


def test_a_job_can_be_named(program: Program) -> None:
    program.run("--gpus", "0", stdin="true #: name=big\n")
    assert told("--job", "big", cwd=program.directory).startswith('job 1 "big" of run ')


def test_a_word_that_is_the_name_of_a_job_and_not_a_run_is_met_with_the_option_for_it(program: Program) -> None:
    program.run("--gpus", "0", stdin="true #: name=zebra\n")
    here = program.directory
    said = refusal("zebra", cwd=here)
    assert "no run matches 'zebra'" in said
    assert said.endswith("; for the job named zebra: --job zebra")
    assert "--job" not in refusal("zebr", cwd=here)
    run = as_json(cwd=here)["run"]["id"]
    assert "; for a job of this run: --job 1 (see " in refusal(run, "1", cwd=here)
    assert "--job" not in refusal(run, "zebra", cwd=here)


def test_the_page_of_a_job_has_only_it(dark: Path) -> None:
    assert ask("3", "--html", "job.html", cwd=dark).returncode == 0
    text = (dark / "job.html").read_text()
    values = json.loads(text.partition('id="report">')[2].partition("</script>")[0])
    assert [job["job"] for job in values["jobs"]] == [3]


@pytest.mark.parametrize("name", ["x.pdf", "x.SVG", "x.jpeg"])
def test_a_picture_is_not_written_under_the_name_of_another_format(dark: Path, name: str) -> None:
    assert refusal("--png", name, "--html", "x.html", cwd=dark).endswith("--png writes PNG; name it x.png")
    assert os.listdir(dark) == []


class TestPictures:
    @pytest.fixture(autouse=True)
    def with_matplotlib(self) -> None:
        pytest.importorskip("matplotlib")

    @pytest.mark.parametrize("which", [[], ["--job", "3"]], ids=["run", "job"])
    def test_a_directory_gets_four(self, dark: Path, which: list[str]) -> None:
        done = ask(*which, "--png", "pictures/", cwd=dark)
        names = ["utilization.png", "memory_copy.png", "temperature.png", "power.png"]
        assert (done.returncode, done.stderr.split()[1::2]) == (0, [f"pictures/{name}" for name in names])
        assert sorted(os.listdir(dark / "pictures")) == sorted(names)
        assert stat.S_IMODE((dark / "pictures" / "power.png").stat().st_mode) == 0o600
        again = ask(*which, "--png", "pictures", cwd=dark)  # it is a directory now
        assert again.returncode == 0

    def test_what_is_no_picture_is_not_overwritten(self, dark: Path) -> None:
        (dark / "pictures").mkdir()
        (dark / "pictures" / "power.png").write_text("mine\n")
        assert "pictures/power.png is not a PNG image" in refusal("--png", "pictures", cwd=dark)
        assert os.listdir(dark / "pictures") == ["power.png"]

    def test_a_run_that_was_not_measured_has_none(self, program: Program) -> None:
        program.run("--gpus", "0", stdin="true\n")
        assert "no GPU was measured in run " in refusal("--png", "pictures/", cwd=program.directory)
        assert not (program.directory / "pictures").exists()

    def test_a_directory_that_cannot_be_made_is_said(self, dark: Path) -> None:
        (dark / "file").write_text("")
        assert "Not a directory" in refusal("--png", "file/x/", cwd=dark)


def test_a_summary_of_a_run_without_samples_still_has_the_figures(dark: Path) -> None:
    state = Path(os.environ["XDG_STATE_HOME"]) / "simple_gpu_scheduler" / "runs"
    (state / f"{RUN}.samples").unlink()
    report = as_json(cwd=dark)
    assert report["lanes"] == []
    assert report["gpus"][0]["measured"]["energy"] > 0
    assert report["gpus"][2]["measured"] is None  # its jobs shared it, so only its curve tells
    assert "GPU USE" in told(cwd=dark)


def test_a_samples_file_that_is_damaged_is_read_as_far_as_it_goes(dark: Path) -> None:
    state = Path(os.environ["XDG_STATE_HOME"]) / "simple_gpu_scheduler" / "runs"
    samples = state / f"{RUN}.samples"
    lines = samples.read_bytes().splitlines(keepends=True)
    samples.write_bytes(lines[0] + b'{"event":"curve","job":"x"}\n\xff\xfe\n' + lines[2][:90])
    assert len(as_json(cwd=dark)["lanes"]) == 1


def test_a_real_run_tells_which_job_left_its_gpu_idle(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(0, utilization=80, power=250_000), a_gpu(1, power=60_000)])
    jobs = "sleep 3.2; echo used $CUDA_VISIBLE_DEVICES\n" * 2
    assert program.run("--gpus", "0", "1", "--output", "files", stdin=jobs).returncode == 0
    report = as_json(cwd=program.directory)
    idle = next(job for job in report["jobs"] if job["gpus"] == ["1"])
    assert report["worst"][0] == idle["job"]
    assert [lane["gpu"] for lane in report["lanes"]] == ["0", "1"]
    assert report["lanes"][1]["idle"] == pytest.approx(report["lanes"][1]["seconds"])
    use = told(cwd=program.directory).partition("GPU USE")[2]
    row = next(line for line in use.splitlines() if " gpu 1 " in line)
    assert " 0 % " in row
    one = told(str(idle["job"]), cwd=program.directory)
    assert "utilisation over 3." in one
    assert one.rstrip().endswith("| used 1")


def test_it_is_the_same_program(dark: Path) -> None:
    done = subprocess.run([*REPORT, "3"], cwd=dark, check=False, capture_output=True, text=True)
    by_name = subprocess.run(
        [sys.executable, "-m", "simple_gpu_scheduler", "report", "3"],
        cwd=dark,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.returncode) == (by_name.stdout, by_name.returncode)
