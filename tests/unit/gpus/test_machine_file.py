"""The machine file: what it may say, and that nothing in it is ever silently ignored."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.gpus.machine_file import MachineFile, MachineLimits, read_machine_file
from tests.conftest import work

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    if os.geteuid():
        pytest.skip("only a file of root is trusted")

    def write(content: str | bytes) -> Path:
        path = tmp_path / "machine.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(0o644)
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_machine_file(str(path))
    text = str(caught.value)
    assert text.startswith((f"{path}: ", f"cannot read {path}: "))
    assert "\n" not in text
    return text.partition(f"{path}: ")[2]


def test_it_is_optional_and_costs_next_to_nothing_where_there_is_none(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    assert read_machine_file(path) == MachineFile()
    assert work(lambda: read_machine_file(path)) < 20


def test_all_of_it(write: Write) -> None:
    path = write("""
        lease-directory = "/run/lock//gpus/"
        [defaults]
        grace = "30s"
        retries = 2
        [limits]
        gpus = ["0-2", "5"]
        gpus-per-run = 4
        jobs-per-gpu = 2
        max-used-memory = "2G"
        share-with = ["me", "root"]
        ignore-occupancy = false
    """)
    limits = MachineLimits(("0", "1", "2", "5"), 4, 2, 2 << 30, ("me", "root"), ignore_occupancy=False)
    expected = MachineFile(str(path), "/run/lock/gpus", {"grace": "30s", "retries": 2}, limits)
    assert read_machine_file(str(path)) == expected


def test_an_empty_file_sets_nothing(write: Write) -> None:
    path = write("")
    assert read_machine_file(str(path)) == MachineFile(str(path))


def test_no_users_at_all_may_be_allowed(write: Write) -> None:
    assert read_machine_file(str(write("[limits]\nshare-with = []"))).limits.share_with == ()


def test_a_file_that_changes_is_read_again(write: Write) -> None:
    for number in (1, 2, 30):
        path = write(f"[limits]\ngpus-per-run = {number}\n")
        assert read_machine_file(str(path)).limits.gpus_per_run == number


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("limits", "this is not TOML: "),
        ('[limits]\ngpus = "0', "(at "),
        (b"[limits]\n# \xff\n", "line 2 is not UTF-8"),
        ("lease-dir = '/x'", "lease-dir: unknown key; the keys are lease-directory, defaults, limits"),
        ("lease-directory = 'x'", "lease-directory must be an absolute path"),
        ("lease-directory = 3", "lease-directory must be an absolute path"),
        ("limits = 3", "limits must be a section: write [limits]"),
        ("[[defaults]]\n", "defaults must be a section: write [defaults]"),
        ("[limits]\nmax-gpus = 3", "[limits] max-gpus: unknown key; the keys are gpus, gpus-per-run, "),
        ("[limits]\ngpus = '0-'", "[limits] gpus: "),
        ("[limits]\ngpus = []", "[limits] gpus: must be text in quotes, a number, or an array of these"),
        ("[limits]\ngpus = true", "[limits] gpus: must be text"),
        ("[limits]\ngpus-per-run = 0", "[limits] gpus-per-run: must be a whole number (1 or more)"),
        ("[limits]\ngpus-per-run = '4'", "[limits] gpus-per-run: must be a whole number"),
        ("[limits]\njobs-per-gpu = true", "[limits] jobs-per-gpu: must be a whole number"),
        ("[limits]\nmax-used-memory = 2", '[limits] max-used-memory: must be a size in quotes, such as "2G"'),
        ("[limits]\nmax-used-memory = 'much'", "[limits] max-used-memory: 'much' is not a size"),
        ("[limits]\nshare-with = {}", "[limits] share-with: must be text in quotes"),
        ("[limits]\nignore-occupancy = 'no'", "[limits] ignore-occupancy: must be true (allowed) or false"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(write: Write, content: str | bytes, sentence: str) -> None:
    assert sentence in refusal(write(content))


@given(st.text())
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    if os.geteuid():
        pytest.skip("only a file of root is trusted")
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    path.chmod(0o644)
    with suppress(UserError):
        read_machine_file(str(path))


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_may_write_is_not_trusted(write: Write, mode: int) -> None:
    path = write("")
    path.chmod(mode)
    assert f"it has mode {mode:o}, so not only root may write to it; run: chmod go-w {path}" in refusal(path)


def test_a_file_of_another_user_is_not_trusted(write: Write) -> None:
    path = write("")
    os.chown(path, 1234, 1234)
    assert "it does not belong to root" in refusal(path)
    assert f"run: chown root {path}" in refusal(path)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_and_nobody_waits_for_it(tmp_path: Path, make: Callable[[str], None]) -> None:
    path = tmp_path / "machine.toml"
    make(str(path))
    assert "it is not a regular file; replace it" in refusal(path) or "Is a directory; replace it" in refusal(path)


def test_a_link_to_a_file_that_is_missing_does_not_lift_the_limits(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.symlink_to("elsewhere")
    assert "No such file or directory; replace it, or delete it" in refusal(path)
