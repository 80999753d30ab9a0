"""tests/unit stands as the package does, and starts no program."""

import ast
import os
import socket
from pathlib import Path

import pytest

from tests.conftest import ROOT

HERE = Path(__file__).parent
PACKAGE = ROOT / "simple_gpu_scheduler"
ROOMS = [path for path in HERE.iterdir() if path.is_dir() and path.name != "__pycache__"]
OF_SEVERAL_MODULES = {"golden_starts", "queueing", "starving"}


def imports(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return names | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_folder_is_a_room_and_a_file_has_the_name_of_the_module_that_it_tests(room: Path) -> None:
    modules = {path.stem for path in (PACKAGE / room.name).rglob("*")} | {room.name}
    assert {path.stem.removeprefix("test_") for path in room.glob("test_*.py")} - OF_SEVERAL_MODULES <= modules


def test_no_file_imports_what_starts_programs() -> None:
    assert not {path.name for path in HERE.rglob("*.py") if {"subprocess", "multiprocessing"} & imports(path)}


def test_a_test_that_starts_a_program_or_opens_a_connection_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="into tests/program"):
        os.system("true")
    with socket.socket() as ours, pytest.raises(pytest.fail.Exception, match="into tests/program"):
        ours.connect(("127.0.0.1", 9))
