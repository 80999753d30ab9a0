"""It reads and writes as `json` does."""

import json

import pytest

from simple_gpu_scheduler.base.quickjson import dumps, loads


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, -2.5e3, null, true, "\\u00e9\\ud83d\\ude00"]}',
        " 1\n",
        '"x"',
        "NaN",
        "-Infinity",
        "[]",
        "{}",
        "12345678901234567890",
    ],
)
def test_reads_what_the_standard_library_reads(text):
    expected = repr(json.loads(text))
    assert repr(loads(text)) == repr(loads(text.encode())) == expected


@pytest.mark.parametrize("text", ["", " ", "[1,]", "{1: 2}", "[1] 2", "nul", '"a', b"\xff", "[" * 100_000])
def test_refuses_what_the_standard_library_refuses(text):
    for reads in (loads, json.loads):
        with pytest.raises((ValueError, RecursionError)):
            reads(text)


@pytest.mark.parametrize("value", [{"a": [1, 2.5, None, True, "é\ud800\n"], "b": {}}, [], "x", 1, (1, 2), {1: 2}])
def test_writes_what_the_standard_library_writes(value):
    assert dumps(value) == json.dumps(value, separators=(",", ":"))


def test_refuses_to_write_what_it_has_no_words_for():
    for writes in (dumps, json.dumps):
        with pytest.raises(TypeError, match="Object of type set is not JSON serializable"):
            writes({"a": {1}})
