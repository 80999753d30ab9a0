"""File formats: JSON, TOML, YAML and CSV -> mappings, lists and strings.

Numbers stay as written: 1e-5 does not become 1e-05. The only file that knows yaml.
"""

import csv
import io
import json
import os
from pathlib import Path

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.extras import install, toml_reader
from simple_gpu_scheduler.base.stdlib import suppress
from simple_gpu_scheduler.base.values import Any, Callable, Mapping, Sequence
from simple_gpu_scheduler.system.files import replace_file

from .definitions import is_saved, read_sweeps, save_sweeps
from .sweep import Sweep, shown

_NULLS = ("", "~", "null", "Null", "NULL")


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise UserError(f"{shown(next(name for name in names if names.count(name) > 1))} is given twice")
    return found


def _load_json(text: str) -> Any:
    try:
        return json.loads(text, parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UserError(f"this is not JSON: {error}") from None


def _load_toml(text: str) -> Any:
    loads = toml_reader()
    try:
        return loads(text, parse_float=lambda number: number.replace("_", ""))
    except (ValueError, RecursionError) as error:
        raise UserError(f"this is not TOML: {error}") from None


def _load_yaml(text: str) -> Any:
    try:
        import yaml  # noqa: PLC0415 - only for such files
    except ImportError:
        raise UserError(f"YAML needs PyYAML; {install('pyyaml', 'files')}") from None

    class Loader(yaml.BaseLoader):  # type: ignore[misc] # it is not typed
        """Keeps all scalars as strings, as written."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            names = [key.value for key, _ in node.value]
            _unique([(str(name), None) for name in names])
            return super().construct_mapping(node, deep)

        def construct_scalar(self, node: Any) -> Any:
            return None if node.style is None and node.value in _NULLS else super().construct_scalar(node)

    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 - a base loader makes nothing but texts, lists and mappings
    except (yaml.YAMLError, RecursionError) as error:
        raise UserError(f"this is not YAML: {' '.join(str(error).split())}") from None


def _load_csv(text: str) -> Any:
    """Rows of strings under names, like `rows` in the other formats."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    try:
        lines = [(reader.line_num, row) for row in reader if row]
        lines = [(line, row) for line, row in lines if row != [""] or len(lines[0][1]) == 1]
    except csv.Error as error:
        raise UserError(f"line {reader.line_num}: this is not CSV: {error}") from None
    if len(lines) < 2:  # noqa: PLR2004 - names, and one row
        raise UserError("the first line must name the parameters, followed by one line per configuration")
    names = [name.strip() for name in lines[0][1]]
    if len(names) == 1 and ";" in names[0]:
        raise UserError("the columns are separated by ';'; use ','")
    for line, row in lines[1:]:
        if len(row) != len(names):
            values = "1 value" if len(row) == 1 else f"{len(row)} values"
            raise UserError(f"line {line} has {values}, but the first line has {len(names)} names")
    return {"rows": [_unique(list(zip(names, row, strict=True))) for _, row in lines[1:]]}


FORMATS: Mapping[str, Callable[[str], Any]] = {
    ".json": _load_json,
    ".toml": _load_toml,
    ".yaml": _load_yaml,
    ".yml": _load_yaml,
    ".csv": _load_csv,
}


def load(suffix: str, data: bytes) -> Any:
    """Parse the bytes of a file with this suffix."""
    if suffix.lower() not in FORMATS:
        raise UserError(f"a sweep file must end in one of {', '.join(FORMATS)}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"line {line} is not UTF-8") from None
    return FORMATS[suffix.lower()](text)


def read_sweep_file(path: str) -> list[Sweep]:
    """The sweeps in a file."""
    try:
        return read_sweeps(load(Path(path).suffix, Path(path).read_bytes()))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except UserError as error:
        raise UserError(f"{path}: {error}") from None


def save_sweep_file(path: str, sweeps: list[Sweep]) -> None:
    """Write it completely or not at all. An existing file is only overwritten by the same sweep."""
    target = Path(os.path.realpath(path))  # replace the target of a link, not the link
    text = save_sweeps(sweeps)
    try:
        _check_target(target, text)
        replace_file(str(target), text.encode())
    except OSError as error:
        raise UserError(f"--save {path}: cannot write it: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"--save {path}: {error}") from None


def _check_target(target: Path, text: str) -> None:
    if target.suffix.lower() != ".json":
        raise ValueError("a sweep is saved as JSON; choose a file name that ends in .json")
    if not target.exists():
        return
    if not target.is_file():  # reading a pipe would block
        raise ValueError("it is not a regular file")
    data = target.read_bytes()
    if data in (b"", text.encode()):
        return
    kind = "not a saved sweep"
    with suppress(UserError):
        kind = "another sweep" if is_saved(load(".json", data)) else kind
    raise ValueError(f"that file is {kind} and is not overwritten; choose another, or remove it first")
