"""`--from` and `--save`: sweeps in files, opened and written with care."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from simple_gpu_scheduler.errors import UserError
from simple_gpu_scheduler.hypersearch.definitions import is_saved, read_sweeps, save_sweeps
from simple_gpu_scheduler.hypersearch.files import load
from simple_gpu_scheduler.hypersearch.sweep import Sweep


def read_sweep_file(path: str) -> list[Sweep]:
    """The sweeps that a file describes."""
    try:
        return read_sweeps(load(Path(path).suffix, Path(path).read_bytes()))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def save_sweep_file(path: str, sweeps: list[Sweep]) -> None:
    """Write it whole or not at all, before the first line is printed: the reader of those may leave at any time."""
    target = Path(os.path.realpath(path))  # what a link points to, not the link, is written anew
    _check_target(target)
    try:
        fd, name = tempfile.mkstemp(prefix=".sweep-", dir=target.parent)
        try:
            with os.fdopen(fd, "w") as file:
                file.write(save_sweeps(sweeps))
            os.replace(name, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None


def _check_target(target: Path) -> None:
    if target.suffix.lower() != ".json":
        raise UserError(f"--save {target}: a sweep is saved as JSON; name a file that ends in .json")
    if not target.exists():
        return
    if not target.is_file():  # a pipe would be waited for
        raise UserError(f"--save {target}: that is no plain file")
    try:
        data = target.read_bytes()
    except OSError as error:
        raise UserError(f"--save {target}: {error.strerror}") from None
    with suppress(UserError):
        if not data or is_saved(load(".json", data)):
            return
    raise UserError(f"--save {target}: that file is no saved sweep, and is not written over; name another")
