"""A sweep as a mapping, as in files, and back. The keys are the names of the command-line options."""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Any, Callable, Mapping

from .order import SAMPLERS
from .sweep import IN_ORDER, SHUFFLED, Rows, Sweep, WrittenValues, meant, shown
from .values import is_whole

_MARK = "simple_hypersearch"  # marks a saved file, with the version of its format
VERSION = "1"


def _text(value: Any, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, Mapping | list):
        why = "" if value is None else ", not several (in YAML, quote what starts with { or [)"
        raise UserError(f"{what} must be text or a number{why}")
    text = str(value)
    try:
        text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise UserError(f"{what} contains an incomplete character") from None
    if "\0" in text:
        raise UserError(f"{what} contains a NUL byte, which no command can hold")
    return text


def _texts(value: Any, what: str) -> tuple[str, ...]:
    return tuple(_text(item, what) for item in value) if isinstance(value, list) else (_text(value, what),)


def _mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise UserError(f"{what} must map names to values")
    return value


def _parameters(value: Any, what: str) -> dict[str, WrittenValues]:
    """A name that ends in `=` has literal values, as in `-p NAME=VALUE`."""
    found: dict[str, WrittenValues] = {}
    for written, words in _mapping(value, what).items():
        name = written.removesuffix("=")
        if name in found:
            raise UserError(f"the parameter {name} is given twice")
        found[name] = WrittenValues(_texts(words, f"a value of {name}"), name != written)
    return found


def _rows(value: Any, what: str) -> Rows:
    if not isinstance(value, list) or not value:
        raise UserError(f"{what} must be a list of at least one configuration")
    rows = [_mapping(row, f"each of {what}") for row in value]
    columns = tuple(rows[0])
    for number, row in enumerate(rows, 1):
        if row.keys() != rows[0].keys():
            raise UserError(f"row {number} has different names from the first row, which has {', '.join(columns)}")
    return Rows(columns, tuple(tuple(_text(row[name], f"{name} in a row") for name in columns) for row in rows))


def _zips(value: Any, what: str) -> tuple[tuple[str, ...], ...]:
    """`lr,wd`, or a list of such, or a list of names, or of lists of names."""
    if isinstance(value, list) and value and all(isinstance(item, str) and "," not in item for item in value):
        return (_texts(value, what),)
    groups = value if isinstance(value, list) else [value]
    return tuple(_texts(group, what) if isinstance(group, list) else parse_zip(_text(group, what)) for group in groups)


def parse_zip(text: str) -> tuple[str, ...]:
    """The names in `lr,wd`."""
    return tuple(name.strip() for name in text.split(","))


def _conditions(value: Any, what: str) -> dict[str, str]:
    return {name: _text(condition, what) for name, condition in _mapping(value, what).items()}


def parse_whole(text: str) -> int:
    """A whole number of reasonable length; a ValueError says that it is not one."""
    if not is_whole(text):
        raise ValueError(f"{shown(text)} is not a whole number")
    return int(text)


def _whole(value: Any, what: str) -> int:
    try:
        return parse_whole(_text(value, what))
    except ValueError as error:
        raise UserError(f"{what}: {error}") from None


def _number(value: Any, what: str) -> int:
    number = _whole(value, what)
    if number < 1:
        raise UserError(f"{what} must be 1 or more")
    return number


def _one_of(*known: str) -> Callable[[Any, str], str]:
    def read(value: Any, what: str) -> str:
        text = _text(value, what)
        if text not in known:
            raise UserError(f"{what} must be one of {', '.join(known)}, not {shown(text)}")
        return text

    return read


_KEYS: Mapping[str, tuple[str, Callable[[Any, str], Any]]] = {
    "pattern": ("pattern", _text),
    "parameters": ("parameters", _parameters),
    "rows": ("rows", _rows),
    "zip": ("zips", _zips),
    "where": ("where", _texts),
    "when": ("when", _conditions),
    "repeat": ("repeat", _number),
    "name": ("name", _text),
    "sampling-mode": ("sampling_mode", _one_of(SHUFFLED, IN_ORDER)),
    "sampler": ("sampler", _one_of(*SAMPLERS)),
    "n-samples": ("samples", _number),
    "seed": ("seed", _whole),
}


def read_sweeps(data: Any) -> list[Sweep]:
    """The sweeps in a file; settings beside `sweeps` apply to all of them."""
    whole = dict(_mapping(data, "a sweep"))
    if str(whole.pop(_MARK, VERSION)) != VERSION:
        raise UserError("this was saved by a newer version of simple_hypersearch")
    several = whole.pop("sweeps", None)
    common = _read(whole)
    if several is None:
        return [common]
    if not isinstance(several, list) or not several:
        raise UserError("sweeps must be a list of at least one sweep")
    return [combine(common, _read(_mapping(sweep, "each of sweeps"))) for sweep in several]


def _read(data: Mapping[str, Any]) -> Sweep:
    found = {}
    if "sweeps" in data:
        raise UserError("a sweep within sweeps cannot contain sweeps")
    for written, value in data.items():
        key = written.replace("_", "-")
        if key not in _KEYS:
            raise UserError(f"{shown(written)} is not a setting of a sweep{meant(key, _KEYS)}")
        field, read = _KEYS[key]
        if field in found:
            raise UserError(f"{key} is given twice")
        found[field] = read(value, key)
    return Sweep(**found)


def combine(common: Sweep, more: Sweep) -> Sweep:
    """Both sweeps: parameters and conditions of the two, single settings of the second if it has them."""
    empty = Sweep()
    said = {field: value for field, value in more._asdict().items() if value != getattr(empty, field)}
    return common._replace(**said)._replace(
        parameters={**common.parameters, **more.parameters},
        zips=common.zips + more.zips,
        where=common.where + more.where,
        when={**common.when, **more.when},
    )


def save_sweeps(sweeps: list[Sweep]) -> str:
    """The text of a JSON file that says the same."""
    import json  # noqa: PLC0415 - only to save

    definitions = [_definition(sweep) for sweep in sweeps]
    inner = definitions[0] if len(definitions) == 1 else {"sweeps": definitions}
    return json.dumps({_MARK: int(VERSION), **inner}, indent=2, ensure_ascii=True) + "\n"


def is_saved(data: Any) -> bool:
    """Whether a file was saved by this program, and may be overwritten."""
    return isinstance(data, Mapping) and _MARK in data


def _definition(sweep: Sweep) -> dict[str, Any]:
    found = {
        key: value for key, (field, _) in _KEYS.items() if (value := getattr(sweep, field)) != getattr(Sweep(), field)
    }
    if sweep.parameters:
        found["parameters"] = {
            f"{name}=" if words.are_literal else name: list(words.words) for name, words in sweep.parameters.items()
        }
    if sweep.rows.rows:
        found["rows"] = [dict(zip(sweep.rows.columns, row, strict=True)) for row in sweep.rows.rows]
    return found
