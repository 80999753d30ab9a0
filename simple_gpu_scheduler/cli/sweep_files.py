"""`--from` and `--save`: sweeps in files, opened and written with care."""

import os
from contextlib import suppress
from pathlib import Path

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.hypersearch.definitions import is_saved, read_sweeps, save_sweeps
from simple_gpu_scheduler.hypersearch.files import load
from simple_gpu_scheduler.hypersearch.sweep import Sweep
from simple_gpu_scheduler.whole_files import replace_file


def read_sweep_file(path: str) -> list[Sweep]:
    """The sweeps that a file describes."""
    try:
        return read_sweeps(load(Path(path).suffix, Path(path).read_bytes()))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def save_sweep_file(path: str, sweeps: list[Sweep]) -> None:
    """Write it whole or not at all. An older one is only written over by the same."""
    target = Path(os.path.realpath(path))  # what a link points to, not the link, is written anew
    text = save_sweeps(sweeps)
    try:
        _check_target(target, text)
        replace_file(str(target), text.encode())
    except OSError as error:
        raise UserError(f"--save {path}: it cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"--save {path}: {error}") from None


def _check_target(target: Path, text: str) -> None:
    if target.suffix.lower() != ".json":
        raise ValueError("a sweep is saved as JSON; name a file that ends in .json")
    if not target.exists():
        return
    if not target.is_file():  # a pipe would be waited for
        raise ValueError("that is no plain file")
    data = target.read_bytes()
    if data in (b"", text.encode()):
        return
    kind = "no saved sweep"
    with suppress(UserError):
        kind = "another sweep" if is_saved(load(".json", data)) else kind
    raise ValueError(f"that file is {kind}, and is not written over; name another, or remove it first")
