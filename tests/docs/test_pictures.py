"""The README's pictures: that they are there, small and whole, and tell of no machine; and parts of what makes them."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from tests.conftest import ROOT
from tests.support.nvml import GIB

PICTURES = ROOT / "docs" / "pictures"
DRAWINGS = ("live.svg", "summary.svg")
PHOTOGRAPHS = ("report.png", "report-dark.png", "sweep.png", "night.png", "night-dark.png")
NAMESPACE = "http://www.w3.org/2000/svg"
MOMENT = """\
$ simple_gpu_scheduler --gpus 0-3 --logs logs jobs.txt
job 2 "vit-b" (line 2 of jobs.txt) failed with exit code 1 after 2.0 s, retrying: python train.py vit-b
GPU  JOB         TRY   TIME  UTIL           MEMORY   TEMP  POWER  LAST OUTPUT
0    1 resnet50        14 s  97 %  38.2 / 80.0 GiB  71 °C  312 W  epoch 6/8:  33%|███▎      | loss=0.550
1    2 vit-b       2   12 s  91 %  61.7 / 80.0 GiB  68 °C  287 W  epoch 4/7:  53%|█████▎    | loss=0.961
2    9 vit-s          2.4 s  99 %  52.4 / 80.0 GiB  74 °C  341 W  epoch 2/8:   4%|▍         | loss=1.799
3    8 convnext       6.8 s  88 %  24.9 / 80.0 GiB  66 °C  259 W  epoch 3/8:  76%|███████▌  | loss=0.983
last failures:
job 4 "unet" (line 4 of jobs.txt) failed with exit code 1 after 2.6 s: python train.py unet
    RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x8192 and 4096x10)
━━━━━━━━━━━━━━━━────────────── 5 of 16 done, 2 failed, 4 running, 7 waiting, about 6.5 s left
"""


@pytest.fixture(autouse=True)
def _scripts_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PICTURES))


def text_of(svg: str) -> str:
    """What a drawing shows, with its lines."""
    root = ET.fromstring(svg)
    lines = ["".join(each.itertext()).replace("\xa0", " ").rstrip() for each in root.iter(f"{{{NAMESPACE}}}text")]
    return "\n".join(lines)


def test_no_picture_is_without_a_test_here() -> None:
    assert sorted(DRAWINGS + PHOTOGRAPHS) == sorted(
        each.name for each in PICTURES.iterdir() if each.suffix in {".svg", ".png"}
    )


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_is_well_formed_small_and_loads_nothing(name: str) -> None:
    svg = (PICTURES / name).read_text()
    assert ET.fromstring(svg).tag == f"{{{NAMESPACE}}}svg"
    assert len(svg.encode()) < 60_000
    assert "//" not in svg.replace(NAMESPACE, "", 1)
    assert not re.search(r"@import|@font-face|<script|<image|url\((?!#)", svg)


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_drawing_tells_of_no_machine(name: str) -> None:
    shown = text_of((PICTURES / name).read_text())
    assert "$ simple_gpu_scheduler" in shown
    assert not re.search(r"/(?!home/ada)(tmp|home|root|work|usr|var)/", shown)


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_photograph_is_whole_and_small(name: str) -> None:
    path = PICTURES / name
    assert path.stat().st_size < 250_000
    with Image.open(path) as picture:
        picture.load()
        assert (picture.format, picture.width) == ("PNG", 1280)
        assert 300 < picture.height < 1600
        assert len(picture.getcolors()) > 20


@pytest.mark.parametrize("name", DRAWINGS + PHOTOGRAPHS)
def test_the_readme_shows_each_picture(name: str) -> None:
    assert f"docs/pictures/{name}" in (ROOT / "README.md").read_text()


def test_a_screen_is_drawn_with_its_colours_and_all_of_its_text() -> None:
    screen = "\x1b[31mred\x1b[39m & <b> ━━ 33%|███▎ |\n\n  [bold]it is[/bold]"
    svg = importlib.import_module("drawing").draw(screen, 40, "it")
    shown = text_of(svg).split("\n")
    assert shown[0] == "simple_gpu_scheduler"
    assert "".join(shown[1:]).split() == ["red", "&", "<b>", "━━", "33%|███▎", "|", "[bold]it", "is[/bold]"]
    assert re.search(r'class="it-r\d"[^>]*>red<', svg)
    assert "fill: #cc555a" in svg
    assert "http" not in svg.replace(NAMESPACE, "")


def test_a_line_that_is_wider_than_the_terminal_is_cut_and_makes_no_second_one() -> None:
    drawing = importlib.import_module("drawing")
    assert text_of(drawing.draw("x" * 50, 40, "it")).count("x") == 40


def test_the_moment_for_the_live_view_is_when_all_is_to_be_seen() -> None:
    is_the_moment = importlib.import_module("make").is_the_moment
    assert is_the_moment(MOMENT)
    for text, other in (
        ("epoch 4/7:  53%", "epoch 1/7:  53%"),
        (
            "52.4 / 80.0 GiB  74 °C  341 W  epoch 2/8:   4%|▍         | loss=1.799",
            " 0.0 / 80.0 GiB  30 °C   62 W  idle",
        ),
        ("99 %", " 0 %"),
        ("5 of 16", "4 of 16"),
        ("RuntimeError: mat1", ""),
        (", about 6.5 s left", ""),
    ):
        assert text in MOMENT
        assert not is_the_moment(MOMENT.replace(text, other)), text


def test_only_the_gpus_that_jobs_are_on_are_shown_as_busy() -> None:
    gpus = importlib.import_module("make").readings_of({1, 3})
    assert [gpu.utilization == 0 and gpu.used == 0 for gpu in gpus] == [True, False, True, False]
    assert len({gpu.uuid for gpu in gpus}) == 4
    assert all(gpu.used < 80 * GIB and gpu.power < gpu.power_limit for gpu in gpus)


def test_a_run_is_moved_to_an_invented_machine_and_otherwise_unchanged() -> None:
    make = importlib.import_module("make")
    began = {"event": "run began", "at": 1.5, "host": "mine", "directory": "/tmp/x", "argv": ["/tmp/x"]}
    job = {"event": "job queued", "command": "echo \udcff /tmp/x"}
    lines = make.elsewhere("".join(json.dumps(each) + "\n" for each in (began, job))).splitlines(keepends=True)
    assert json.loads(lines[0]) == began | {"host": "gpubox", "directory": "/home/ada/sweep"}
    assert json.loads(lines[1]) == job
    assert all(line.startswith('{"event":"') and line.endswith("\n") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--lr", "0.002", "--bs", "256"], 0, r"epoch 1: loss \d\.\d{4}\n(.*\n)+done: loss 0\.\d{4}\n$"),
        (["--lr", "0.09", "--bs", "256"], 1, r"^epoch 1: the loss is nan; giving up\n$"),
        (["--lr", "0.002", "--bs", "256", "--drop", "0.48"], 1, r"^torch\.OutOfMemoryError: CUDA out of memory"),
        (["unet"], 1, r"RuntimeError: mat1 and mat2 shapes"),
    ],
    ids=str,
)
def test_the_jobs_of_the_pictures_end_as_they_should_and_leave_their_gpu(
    tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    program = [sys.executable, str(PICTURES / "train.py"), *arguments]
    environment = os.environ | {"PICTURE_GPUS": str(tmp_path), "CUDA_VISIBLE_DEVICES": "2"}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code
    assert re.search(said, done.stdout if code == 0 else done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_a_progress_bar_is_always_as_wide() -> None:
    progress_bar = importlib.import_module("train").progress_bar
    assert progress_bar(0) == "  0%|          |"
    assert progress_bar(0.5) == " 50%|█████     |"
    assert progress_bar(1) == "100%|██████████|"
    assert {len(progress_bar(share / 196)) for share in range(197)} == {len("100%|██████████|")}
