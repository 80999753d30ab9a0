"""Which inputs are held open."""

import os
from pathlib import Path

import pytest

from simple_gpu_scheduler.inputs.gather import is_of, open_held
from simple_gpu_scheduler.inputs.reader import OpenInput


def test_only_a_named_pipe_is_held_open(tmp_path: Path) -> None:
    assert is_of(os.open(os.devnull, os.O_RDONLY)).kind == "other"
    assert is_of(os.pipe()[0]).kind == "pipe"
    path = tmp_path / "fifo"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(fd, 1) == b""
    assert is_of(fd).kind == "fifo"
    fd = open_held(OpenInput(fd)).fd
    os.set_blocking(fd, False)
    with pytest.raises(BlockingIOError):
        os.read(fd, 1)
