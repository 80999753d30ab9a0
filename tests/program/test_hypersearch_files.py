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


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ('a,b,z\r\n1,"x ""y"" z",\r\n,"",""\r\n', ["1 'x \"y\" z'", "'' ''"]), ("a,b,z\r1,{b},\r", ["1 '{b}'"]),
        ("\N{BYTE ORDER MARK}a, b ,z\n\n1,#: 2,\n\n", ["1 '#: 2'"]), ("z,a,b\n1,1,2\n6,3,4\n7,3,4\n", ["1 2", "3 4"]),
        ("z,a,b\n8,1,2\n9,3,4\n6,3,5\n9,3,6\n", ["1 2", "3 5"]),
        pytest.param("a,b,z\n1,x\N{LINE SEPARATOR}y\x0bz,\n", ["1 'x\N{LINE SEPARATOR}y\x0bz'"]),
    ],
)  # fmt: skip
def test_rows_of_csv_come_as_they_are_and_a_column_may_be_there_to_be_asked(swept, content, lines) -> None:
    done = swept("r.csv", content, "{a} {b}", "--where", "z != 9", *GRID)
    assert (done.stdout.decode().split("\n")[:-1], done.returncode) == (lines, 0)


@pytest.mark.parametrize(
    ("name", "content", "scalars"),
    [
        ("s.yaml", "pattern: '{a}'\nparameters: {a: [%s]}", "1e-5, yes, 010, 1_0, '', 1.50, 2020-01-01"),
        ("s.json", '{"pattern": "{a}", "parameters": {"a": [%s]}}', "true, false, 1.50, 1e-5, -0, NaN, 1e999"),
        ("s.toml", "pattern = '{a}'\nparameters.a = [%s]\n", "true, 1.50, 1e-5, inf"),
    ],
)
def test_scalars_of_files_are_as_they_were_written(swept, name, content, scalars) -> None:
    assert swept(name, content % scalars, *GRID).stdout.decode().splitlines() == scalars.split(", ")


LAUGHS = "a: &a [x, x]\n" + "".join(f"{y}: &{y} [{f'*{x},' * 99}]\n" for x, y in zip("abcdef", "bcdefg", strict=True))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("s.csv", "a,b\n1,2\n\n3\n", "line 4 has 1 value, but the first line has 2 names"),
        ("s.csv", 'a,b\n1,"2\n3"\n3,4,5\n', "line 4 has 3 values"), ("s.toml", "a = " + "[" * 10**5, "not TOML"),
        ("s.csv", "a,b\n", "one line per configuration"), ("s.csv", b"a\n1\n\xff\n", "line 3 is not UTF-8"),
        ("s.json", '{"parameters": {"a": 1}}', "there is no PATTERN"), ("s.csv", "", "the first line must name"),
        ("s.yaml", "parameters: {a: 1, a: 2}", "'a' is given twice"), ("s.csv", "a,b,a\n1,2,3\n", "'a' is given twice"),
        ("s.json", '{"zip": {"a": "b"}}', "zip must be text or"), ("s.csv", "a;b\n1;2\n", "separated by ';'"),
        ("s.json", '{"pattern": "a", "pattern": "b"}', "'pattern' is given twice"),
        ("s.json", '{"parameters": {"a": 1, "a=": 2}}', "the parameter a is given twice"),
        ("s.toml", "pattern = 'a'\npattern = 'b'\n", "this is not TOML"), ("s.yaml", LAUGHS, "is not a setting"),
        ("s.json", '{"paramters": {}}', "'paramters' is not a setting of a sweep; did you mean parameters?"),
        ("s.json", '{"repeat": "x"}', "repeat: 'x' is no"), ("s.json", "[1]", "a sweep must map names to values"),
        ("s.json", '{"pattern": null}', "pattern must be text or"), ("s.yaml", "[" * 5000, "not YAML"),
        ("s.json", '{"when": ["a"]}', "when must map names to values"), ("s.txt", "", "must end in one of .json"),
        ("s.json", '{"rows": [{"a": 1}, {"b": 1}]}', "row 2 has different names from the first row"),
        ("s.json", '{"simple_hypersearch": 2}', "saved by a newer version"), ("s.json", "[" * 10**5, "not JSON"),
        ("s.yaml", "parameters:\n  " + LAUGHS.strip().replace("\n", "\n  "), "text or a number, not several"),
        ("s.yaml", "pattern: !!python/name:os.x []", "pattern must be"), ("s.yaml", "a: &a {a: *a}", "not YAML"),
        pytest.param("s.json", '{"pattern": "\\u0000"}', "NUL"), ("s.csv", 'a\n"x', "line 2: this is not CSV"),
        pytest.param("s.json", '{"n_samples": 1, "n-samples": 2}', "n-samples is given twice"),
        pytest.param("s.json", '{"pattern": "{a}", "rows": [{"a": "\\u0000"}]}', "NUL"),
        pytest.param("s.json", '{"pattern": "{a}", "rows": [{"a": "\\ud800"}]}', "s.json"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_reported(swept, name, content, sentence) -> None:
    refused(swept(name, content, *(["x"] if name == "s.csv" else [])), sentence)


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
