"""The golden journal, read."""

import json
from typing import Any

from tests.conftest import ROOT

GOLDEN = ROOT / "tests" / "golden"


def golden(version: int = 1) -> bytes:
    return (GOLDEN / f"journal-{version}.jsonl").read_bytes()


def records(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def kinds(data: bytes) -> set[str]:
    return {each["event"] for each in records(data)}
