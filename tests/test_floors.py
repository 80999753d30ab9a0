"""The floors of the house, and what each room may import. `python -m tests.test_floors` prints the map."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "simple_gpu_scheduler"
FILES = sorted(PACKAGE.rglob("*.py"))
FLOORS = (
    ("base",),
    ("events",),
    ("system",),
    ("jobfile", "measurements", "scheduling"),
    ("journal",),
    ("keeper", "gpus", "output", "joblog"),
    ("inputs", "display", "remote"),
    ("notify", "engines", "resume"),
    ("run",),
    ("report", "simulation", "hypersearch", "doctor", "metrics"),
    ("api", "cli"),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS, 1) for room in rooms}
ONLY_IN = {
    "click": {"cli"},
    "ctypes": {"system", "keeper"},
    "matplotlib": {"base"},
    "pynvml": {"gpus"},
    "rich": {"display"},
    "scipy": {"hypersearch"},
    "yaml": {"hypersearch"},
}
PURE = ("events", "jobfile", "measurements", "scheduling")
NOT_FOR_PURE = {"ctypes", "os", "select", "signal", "socket", "subprocess", "sys", "threading", "time"}
DOCUMENT = ROOT / "docs" / "architecture.md"


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


STDLIB = "simple_gpu_scheduler.base.stdlib."  # where names of the standard library come from


def imports(path: Path) -> Iterator[str]:
    """The full names of all that a file imports, wherever it does."""
    return (name.removeprefix(STDLIB) for name in _imports(path))


def _imports(path: Path) -> Iterator[str]:
    package = ["simple_gpu_scheduler", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else []
            yield from (".".join([*start, *filter(None, [node.module]), each.name]) for each in node.names)


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_room_knows_only_rooms_on_lower_floors(path: Path) -> None:
    room = room_of(path)
    if room not in FLOOR_OF:  # __init__ and __main__
        return
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("simple_gpu_scheduler.")}
    others = {other for other in ours - {room} if other in FLOOR_OF}
    assert sorted(other for other in others if FLOOR_OF[other] >= FLOOR_OF[room]) == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_each_risky_library_has_its_rooms(path: Path) -> None:
    room = room_of(path)
    libraries = {name.split(".")[0] for name in imports(path)}
    assert sorted(name for name in libraries & ONLY_IN.keys() if room not in ONLY_IN[name]) == []
    if room in PURE:
        assert libraries & NOT_FOR_PURE == set()


def test_three_files_stand_at_the_top_and_no_room_is_crowded() -> None:
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "api.py"}
    assert {room_of(path) for path in FILES} - {"__init__", "__main__"} == {*FLOOR_OF}
    for folder in {path.parent for path in FILES}:
        assert len([*folder.glob("*.py")]) <= 18, folder


def test_no_two_classes_share_a_name() -> None:
    found: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(name_of(path))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def first_line(room: str) -> str:
    path = PACKAGE / room / "__init__.py"
    docstring = ast.get_docstring(ast.parse((path if path.exists() else PACKAGE / f"{room}.py").read_text())) or ""
    return docstring.split("\n\n")[0].replace("\n", " ")


def house() -> str:
    """The map: each room with the first sentences of its docstring."""
    rows = [f"| {floor} | `{room}` | {first_line(room)} |" for room, floor in FLOOR_OF.items()]
    return "\n".join(["| floor | room | what it is |", "| --- | --- | --- |", *rows]) + "\n"


def test_the_map_in_the_documents_is_this_one() -> None:
    [found] = re.findall(r"<!-- floors -->\n(.*?)<!-- end -->", DOCUMENT.read_text(), re.DOTALL)
    assert found == house(), "print it anew: python -m tests.test_floors"


if __name__ == "__main__":
    print(house(), end="")
