"""Each mistake in a sweep has a sentence of its own, and nothing is printed."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from simple_gpu_scheduler.base.errors import BAD_INPUT, UserError
from simple_gpu_scheduler.cli.call import call as run_command
from simple_gpu_scheduler.cli.commands.hypersearch import hypersearch

DRAWN = ["-p", "a", "uniform:0:1"]
LISTED = ["-p", "a", "1", "2"]
GRID = ["--sampling-mode", "grid"]
TWO = [*LISTED, "-p", "b", "1", "2"]


@pytest.fixture(autouse=True)
def _leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The command lets a broken pipe end its process, which here is the tests'."""
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGPIPE)
    yield
    signal.signal(signal.SIGPIPE, before)


def call(args: list[str]) -> None:
    run_command(hypersearch, args, "simple_hypersearch")


def refused(args: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError) as caught:
        call(args)
    assert caught.value.code == BAD_INPUT
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["x {a}", *DRAWN], "the values of a are drawn at random; add --n-samples N: how many commands to print"),
        (["x {a}", "-p", "a", "int:1:9", "--n-samples", "2", "--sampling-mode", "grid"], "use range:, or leave out"),
        (["x {a}", *LISTED, "--sampler", "lhs"], "--sampler lhs needs the number of samples; add --n-samples N"),
        (
            ["x {a}", *LISTED, "--sampler", "lhs", "--n-samples", "2", "--sampling-mode", "grid"],
            "--sampler lhs has an order of its own; leave out --sampling-mode",
        ),
        (["x", "--sampler", "lhs", "--n-samples", "2"], "--sampler lhs needs a parameter to sample"),
        (["x {a}", *DRAWN, "--sampler", "lhs", "--n-samples", "9999999"], "can draw at most 1,000,000 samples"),
        (["x {seed}", "-p", "seed", "1", "--repeat", "2"], "--repeat gives {seed} its values; leave out --repeat or"),
        (["x {a} {b}", *TWO, "--zip", "a"], "--zip a names only one parameter; name all that vary together"),
        (["x {a} {b}", *TWO, "--zip", "a,a"], "--zip a,a: a is already in a zip"),
        (["x {a} {b}", *TWO, "--zip", "a,b", "--zip", "b,a"], "--zip b,a: b is already in a zip"),
        (["x {a} {b}", *TWO, "--zip", ""], "--zip lacks a name; write it as --zip lr,wd"),
        (
            ["x {a} {b}", *DRAWN, "-p", "b", "1", "--zip", "a,b", "--n-samples", "2"],
            "--zip a,b: a is drawn at random; only listed values can be zipped",
        ),
        (["x {a}", *LISTED, "--where", "c < 1"], "there is no parameter c (the parameters are a; quote strings"),
        (["x {a-b} {a.b}", "-p", "a-b", "1", "-p", "a.b", "2", "--where", "a_b < 1"], "a_b is ambiguous: a-b or a.b"),
        (["x {a}", *LISTED, "--where", " "], "a condition is empty; write one, as --where 'lr < 1'"),
        (["x {a}", *LISTED, "--where", "a = 1"], "; write == for ="),
        (["x {a}", *LISTED, "--where", "a < 2 && a > 0"], "; write and for &&"),
        (
            ["x {a}", *LISTED, "--where", "a"],
            "'a' is a number; compare it with something; quote a condition that contains",
        ),
        (["x {a}#: gpus=2", *LISTED], "put a space between {a} and #:, or the shell reads both as one word"),
        (["x {a} ${OUT}", *LISTED], "${OUT} is the shell's; write ${{OUT}}, or $OUT"),
        (
            ["x { a }", *LISTED],
            "{ a } is not a placeholder such as {NAME}, {NAME:.2f}, {NAME!s} or {--flag NAME}; write {a}",
        ),
        (["x {A}", *LISTED], "did you mean a?"),
        (["x {a}", *LISTED, "--name", "{c}"], "--name: the pattern has {c}, but there is no parameter of that name"),
        (["x {?a}", *LISTED, "--when", "a", "a > 1"], "--when: a cannot depend on itself"),
        (["{?a} # {b}", *TWO, "--when", "a", "b > 1"], "the pattern has nothing that always runs"),
        (["# {a}", *LISTED], "the pattern has nothing that always runs"),
        (["x {a}", "-p", "a", "logspace:-5:-1:5"], "both ends must be above 0; they are values, not exponents"),
        (["x {a}", "-p", "a=1", "2"], "after -p a=VALUE every value must be literal too: write a=2"),
        (["x {a}", *LISTED, "--seed", "1.5"], "'1.5' is not a whole number"),
        (["x {a}", *LISTED, "--from", "none.json"], "cannot read none.json: No such file"),
        (["x {a}", "--from", "bad.json"], "bad.json: n-samples must be 1 or more"),
        (["x {a}", "--from", "modes.json"], "modes.json: sampling-mode must be one of shuffled_grid, grid, not 'both'"),
        (["x {a}", "--from", "rows.json"], "rows.json: rows must be a list of at least one configuration"),
        (["x {a}", "--from", "none_in_it.json"], "none_in_it.json: sweeps must be a list of at least one sweep"),
        (["x {a}", "--from", "nested.json"], "nested.json: a sweep within sweeps cannot contain sweeps"),
        (["x {a}", "--from", "unused.json"], "unused.json: the pattern does not use the parameter b"),
        (["x {a}", *LISTED, "--from", "columns.json"], "columns.json: the parameter a is also a column of the rows"),
        (["awk '{print}' {a}", "-p", "a", "1"], "the pattern has {print}, but there is no parameter of that name"),
        (["x {}", "-p", "a", "1"], "{} is not a placeholder"),
        (["x {a", "-p", "a", "1"], "the pattern has a '{' that belongs to no placeholder, at character 3"),
        (["x", "-p", "a", "1"], "the pattern does not use the parameter a; write {a} in it, or leave out -p a"),
        (["x {a}", "-p", "a"], "the parameter a has no values; write -p a VALUE..."),
        (["x {a}", "-p", "a", "1", "-p", "a", "2"], "the parameter a is given twice; write all its values after one"),
        (
            ["x {lr} {bz}", "-p", "lr", "1", "-p", "bs", "2"],
            "write {{bz}} for braces of the shell; choose from bs, lr",
        ),
        (["x {a:03d}", "-p", "a", "b"], "{a:03d} cannot take the value 'b' of a: ':03d' cannot format text"),
        (["x {0}", "-p", "0", "1"], "'0' is not a parameter name; a name has letters, digits"),
        (["x {a}", "-p", "a", "1\ntouch injected"], "the value '1\\ntouch injected' of a contains a newline"),
        (["x {a}", "-p", "a", "--amp"], "a value that starts with a dash: -p NAME=VALUE"),
        (
            ["python3", "train.py", "--lr", "{lr}"],
            "No such option --lr. Quote the whole command",
        ),
        (["x {a}", "a=1"], "unexpected 'a=1' next to the pattern 'x {a}'; write a parameter as -p a 1"),
        (["x {a} {b}", "-p", "a", "1", "-p", "b", "2", "--zip", "a", "b"], "with commas: --zip a,b"),
        (["x {a}", "-p", "a", "1", "--where", "a", "<", "1"], "quote the whole pattern, and any condition"),
        (["x {a}", "-p", "a", "1", "--when", "a == 1", "--count"], "--when needs NAME CONDITION"),
        (["x {a}", "-p", "a", "1", "--n", "1"], "No such option --n. Did you mean --n-samples or --name or --null?"),
        (["x {a}", "-p"], "-p must be followed by NAME VALUE...; for example: simple_hypersearch"),
        (["-p", "a", "1", "2", "x {a}"], "there is no PATTERN; 'x {a}' was read as a value of"),
        ([], "there is no PATTERN. For example: simple_hypersearch"),
    ],
)
def test_a_mistake_has_a_sentence(args: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in {
        "bad.json": '{"n-samples": 0}',
        "modes.json": '{"sampling-mode": "both"}',
        "rows.json": '{"rows": []}',
        "none_in_it.json": '{"sweeps": []}',
        "nested.json": '{"sweeps": [{"sweeps": [{}]}]}',
        "unused.json": '{"parameters": {"a": 1, "b": 2}}',
        "columns.json": '{"rows": [{"a": 1}]}',
    }.items():
        Path(name).write_text(content)
    refused(args, sentence, capsys)


@pytest.mark.parametrize(
    ("args", "note"),
    [
        (["x {a}", "-p", "a", "log-uniform:1e-5:1e-1"], "is taken literally; did you mean loguniform:1e-5:1e-1?"),
        (["x {a}", "-p", "a", "uniform", "0", "1"], "'uniform' is taken literally; did you mean uniform:0:1?"),
        (["x {a}", "-p", "a", "0.1,0.01"], "a: '0.1,0.01' is a single value; separate several with spaces"),
        (["x {a} {?b}", *TWO, "--when", "b", "a == 3"], "--when b is never true, so no command contains b"),
        (["x {a}", *LISTED, "--n-samples", "9"], "found only 2 different commands of the 9 requested"),
        (["x {a}", "-p", "a", "1", "1", "2"], "a: '1' is repeated and left out"),
        (["x {a:.0f}", "-p", "a", "1.1", "1.2"], "left out 1 repeated line"),
    ],
)
def test_what_is_doubtful_is_printed_and_reported(
    args: list[str], note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call(args)
    out, err = capsys.readouterr()
    assert out.startswith("x ")
    assert note in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ('a,b,z\r\n1,"x ""y"" z",\r\n,"",""\r\n', ["1 'x \"y\" z'", "'' ''"]), ("a,b,z\r1,{b},\r", ["1 '{b}'"]),
        ("\N{BYTE ORDER MARK}a, b ,z\n\n1,#: 2,\n\n", ["1 '#: 2'"]), ("z,a,b\n1,1,2\n6,3,4\n7,3,4\n", ["1 2", "3 4"]),
        ("z,a,b\n8,1,2\n9,3,4\n6,3,5\n9,3,6\n", ["1 2", "3 5"]),
        pytest.param("a,b,z\n1,x\N{LINE SEPARATOR}y\x0bz,\n", ["1 'x\N{LINE SEPARATOR}y\x0bz'"]),
    ],
)  # fmt: skip
def test_rows_of_csv_come_as_they_are_and_a_column_may_be_there_to_be_asked(
    content: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("r.csv").write_bytes(content.encode())
    call(["--from", "r.csv", "{a} {b}", "--where", "z != 9", *GRID])
    assert capsys.readouterr().out.split("\n")[:-1] == lines


@pytest.mark.parametrize(
    ("name", "content", "scalars"),
    [
        ("s.yaml", "pattern: '{a}'\nparameters: {a: [%s]}", "1e-5, yes, 010, 1_0, '', 1.50, 2020-01-01"),
        ("s.json", '{"pattern": "{a}", "parameters": {"a": [%s]}}', "true, false, 1.50, 1e-5, -0, NaN, 1e999"),
        ("s.toml", "pattern = '{a}'\nparameters.a = [%s]\n", "true, 1.50, 1e-5, inf"),
    ],
)
def test_scalars_of_files_are_as_they_were_written(
    name: str, content: str, scalars: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(content % scalars)
    call(["--from", name, *GRID])
    assert capsys.readouterr().out.splitlines() == scalars.split(", ")


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
def test_what_is_wrong_with_a_file_is_reported(
    name: str, content: str | bytes, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(["--from", name, *(["x"] if name == "s.csv" else [])], sentence, capsys)
