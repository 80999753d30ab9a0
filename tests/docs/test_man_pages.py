"""The man pages say what --help says."""

import importlib.util
import shutil
import subprocess

import pytest

from simple_gpu_scheduler.cli.commands import COMMANDS
from tests.conftest import ROOT

_spec = importlib.util.spec_from_file_location("man_pages", ROOT / "docs" / "man_pages.py")
assert _spec
assert _spec.loader
man_pages = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(man_pages)
PAGES = man_pages.pages()


@pytest.mark.parametrize("name", PAGES)
def test_they_are_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text() == PAGES[name], "run bin/man-pages"


def test_they_have_every_command_and_option() -> None:
    page = PAGES["simple_gpu_scheduler.1"]
    for word in (*(f".SS {each}" for each in COMMANDS), r"\-\-gpus GPU...", r"\-\-resume\-failed", r"\-\-watch"):
        assert f"\n{word}" in page.replace(".B ", "")
    assert r"\-\-n\-samples" in PAGES["simple_hypersearch.1"]


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
@pytest.mark.parametrize("name", PAGES)
def test_groff_has_nothing_to_complain_of(name: str) -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-Kutf8", ROOT / "docs" / name], check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
