"""Sweeps in files, as simple_hypersearch reads and saves them."""

import json
import os
import resource
import subprocess
import sys

import pytest

from tests.conftest import HYPERSEARCH, UNMEASURED

GRID = ["--sampling-mode", "grid"]


@pytest.fixture
def swept(tmp_path):
    def run(name, content, *args):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return hypersearch(tmp_path, "--from", name, *args)

    return run


def hypersearch(cwd, *args, timeout=120, **more):
    return subprocess.run([*HYPERSEARCH, *args], check=False, cwd=cwd, capture_output=True, timeout=timeout, **more)


def refused(done, sentence):
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), done
    assert sentence in done.stderr.decode()


PATTERN = "x {lr} {--m m} {bs} {wd} {c} {seed}"
SAME = {
    "s.yaml": f"""
pattern: "{PATTERN}"
parameters: {{lr: [1e-5, 0.10], m: "range:1:2", bs: [32, 64], wd: [yes, a b], c=: "int:1:2"}}
""" + "when: {m: bs == 32}\nzip: bs,wd\nwhere: lr * bs < 7\nrepeat: 2\nn_samples: 4\nseed: 3\n",
    "s.toml": f"""
pattern = "{PATTERN}"
parameters = {{lr = [1e-5, 0.10], m = "range:1:2", bs = [32, 64], wd = ["yes", "a b"], "c=" = "int:1:2"}}
""" + "when.m = 'bs == 32'\nzip = ['bs', 'wd']\nwhere = ['lr * bs < 7']\nrepeat = 2\nn-samples = 4\nseed = 3\n",
    "s.json": f"""{{"pattern": "{PATTERN}", "repeat": 2, "n-samples": 4, "seed": 3, "zip": [["bs", "wd"]],
"where": "lr * bs < 7", "when": {{"m": "bs == 32"}}, "parameters": {{"lr": [1e-5, 0.10],
"m": ["range:1:2"], "bs": [32, 64], "wd": ["yes", "a b"], "c=": ["int:1:2"]}}}}""",
}  # fmt: skip
ROWS = {
    "r.csv": "lr,wd,bs\n1e-5,yes,32\n0.10,a b,64\n",
    "r.yml": "rows:\n- {lr: 1e-5, wd: yes, bs: 32}\n- {bs: 64, lr: 0.10, wd: a b}\n",
    "r.TOML": "[[rows]]\nlr = 1e-5\nwd = 'yes'\nbs = 32\n[[rows]]\nlr = 0.10\nwd = 'a b'\nbs = 64\n",
    "r.json": '{"rows": [{"lr": 1e-5, "wd": "yes", "bs": 32}, {"lr": 0.10, "wd": "a b", "bs": 64}]}',
}


def test_a_sweep_is_the_same_in_each_format(swept) -> None:
    typed = "-p lr 1e-5 0.10 -p m range:1:2 -p bs 32 64 -p wd yes a_b -p c=int:1:2 --zip bs,wd --repeat 2 --n-samples 4"
    typed = [word.replace("_", " ") for word in typed.split()]
    typed += [PATTERN, "--seed", "3", "--where", "lr * bs < 7", "--when", "m", "bs == 32"]
    expected = hypersearch(None, *typed).stdout
    assert expected.count(b"\n") == 8
    assert [swept(name, text).stdout for name, text in SAME.items()] == [expected] * 3
    lines = b"x 1e-5 32 k\nx 1e-5 32 l\nx 0.10 64 k\nx 0.10 64 l\n"
    more = ["x {lr} {bs} {p}", "-p", "p", "k", "l", *GRID]
    assert [swept(name, text, *more).stdout for name, text in ROWS.items()] == [lines] * 4


def test_what_is_typed_goes_before_the_file(swept) -> None:
    text = '{"pattern": "x {a} {b}", "parameters": {"a": [1, 2], "b": [3]}, "sampling-mode": "grid", "where": "a < 2"}'
    assert swept("s.json", text, "y {b} {a}", "-p", "b", "4", "5").stdout == b"y 4 1\ny 5 1\n"
    assert swept("s.json", text, "-p", "a=7", "-p", "c", "1").stderr.count(b"does not use the parameter c") == 1
    assert swept("s.json", text, "--where", "b > 3", "--count").stdout == b"0\n"
    assert swept("s.json", text.replace("a < 2", "a < 3"), "--n-samples", "1", "--count").stdout == b"1\n"


def test_the_order_of_a_file_can_be_turned_back(swept) -> None:
    text = '{"pattern": "x {a}", "parameters": {"a": "range:1:50"}, "sampling-mode": "grid"}'
    assert swept("s.json", text, "--sampling-mode", "shuffled_grid").stdout != swept("s.json", text).stdout


def test_several_sweeps_follow_each_other_and_no_line_is_there_twice(swept) -> None:
    text = (
        "sampling-mode: grid\npattern: x {a} {i}/{n}\nsweeps:\n- parameters: {a: [1, 2]}\n- parameters: {a: [3, 1]}\n"
    )
    done = swept("s.yaml", text + "- pattern: y {a}\n  parameters: {a: 1}\n")
    assert done.stdout == b"x 1 1/4\nx 2 2/4\nx 3 3/4\ny 1\n"
    assert done.stderr == b"simple_hypersearch: left out 1 repeated line\n"
    refused(swept("s.yaml", text + "- parameters: {b: 1}\n"), "sweep 3: the pattern has {a}, but there is no parameter")
    assert swept("s.yaml", text, "--count").stdout == b"3\n"


def test_an_unreadable_file_and_a_missing_library_are_reported(tmp_path) -> None:
    (tmp_path / "d.json").mkdir()
    refused(hypersearch(tmp_path, "--from", "no.json"), "cannot read no.json: No such file or directory")
    refused(hypersearch(tmp_path, "--from", "d.json"), "cannot read d.json: Is a directory")
    without = "import sys; sys.modules |= dict.fromkeys(['yaml', 'tomllib', 'tomli']); " + HYPERSEARCH[2]
    for name in ("s.yaml", "s.toml"):
        (tmp_path / name).write_text(SAME[name])
        command = [sys.executable, "-c", without, "--from", name]
        refused(subprocess.run(command, capture_output=True, check=False, cwd=tmp_path), "install")


def test_a_saved_sweep_gives_the_same_lines_though_it_had_no_seed(tmp_path) -> None:
    values = ["range:1:3", "#: x y", "it's $HOME", "", "{a}", "é", b"\xff\xfe"]
    args = ["x {a} {b} {c}", "-p", *(b"a=" + (v if isinstance(v, bytes) else v.encode()) for v in values)]
    args += ["-p", "b", "range:1:9", "-p", "c", "uniform:0:1", "--n-samples", "40", "--save", "s.json"]
    first = hypersearch(tmp_path, *args).stdout
    assert first.count(b"\n") == 40
    assert isinstance(json.loads((tmp_path / "s.json").read_text())["seed"], int)
    assert (tmp_path / "s.json").stat().st_mode & 0o7777 == 0o600
    assert hypersearch(tmp_path, "--from", "s.json").stdout == first
    assert hypersearch(tmp_path, *args).stdout != first  # which may be written over, having been saved
    assert os.listdir(tmp_path) == ["s.json"]


def test_it_is_saved_before_the_first_line(tmp_path) -> None:
    args = "'{a}{b}' -p a range:1:100000 -p b range:1:100000 --save s.json | { read -r line; cat s.json; }"
    command = f"{HYPERSEARCH[0]} -c '{HYPERSEARCH[2]}' {args}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=True, timeout=120, cwd=tmp_path)
    assert (json.loads(done.stdout)["parameters"]["a"], done.stderr) == (["range:1:100000"], b"")


def test_where_nothing_can_be_saved_nothing_is_printed_and_nothing_is_lost(tmp_path) -> None:
    (tmp_path / "d.json").mkdir()
    for content in ('{"a": 1}', "no JSON", "[]"):
        (tmp_path / "mine.json").write_text(content)
        refused(hypersearch(tmp_path, "x", "--save", "mine.json"), "not a saved sweep and is not overwritten")
        assert (tmp_path / "mine.json").read_text() == content
    refused(hypersearch(tmp_path, "x", "--save", "s.yaml"), "choose a file name that ends in .json")
    refused(hypersearch(tmp_path, "x", "--save", "d.json"), "it is not a regular file")
    refused(hypersearch(tmp_path, "x", "--save", "no/s.json"), "no/s.json: cannot write it: No such file")
    refused(hypersearch(tmp_path, "x", "--save", "mine.json/s.json"), "Not a directory")
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)), "env": UNMEASURED}
    refused(hypersearch(tmp_path, "x", "--save", "s.json", **full), "s.json: cannot write it: File too large")
    assert sorted(os.listdir(tmp_path)) == ["d.json", "mine.json"]


def test_a_pipe_of_that_name_is_no_place_to_save(tmp_path) -> None:
    os.mkfifo(tmp_path / "s.json")
    refused(hypersearch(tmp_path, "x", "--save", "s.json"), "s.json")
