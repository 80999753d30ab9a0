"""Where a shell would see a comment; what a real shell makes of it is the judge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simple_gpu_scheduler.jobfile.shell_comments import CommentScanner, find_comments

COMMENT = [
    (b"a #: b", 2),
    (b"#: b", 0),
    (b"\t#: b", 1),
    (b"a;#: b", 2),
    (b"a&&b;#: c", 5),
    (b"(a)#: b", 3),
    (b"echo 'x' #: b", 9),
    (b'echo "x" #: b', 9),
    (b'echo "it\'s" #: b', 12),
    (b"echo $(x) #: b", 10),
    (b'echo "$(echo "a b")" #: b', 21),
    (b"echo `x` #: b", 9),
    (b"echo ${x:-a b} #: c", 15),
    (b"echo $((1 + (2))) #: b", 18),
    (b'echo "$((cd x); echo " #: a")" #: b', 31),
    (b"echo $((a)')' ) #: c", 16),
    (b"echo $# #: b", 8),
    (b"echo $$ #: b", 8),
    (rb"echo \" #: b", 8),
    (rb"echo 'a\' #: b", 10),
    (rb"echo $'a\' #: x' #: b", 17),
    (b"echo a#b #: c", 9),
    (b"cat <<E\n#: in\nE\necho b #: c", 23),
    (b"cat <<-'E F'\n#: in\n\tE F\necho b #: c", 31),
    (b"cat <<<a #: b", 9),
    (b"cat <<<'a #: b' #: c", 16),
    (b"awk '{print $1}' < f | sort #: b", 28),
    (rb"echo $(echo 'a\') #: b", 18),
    (b"a `echo # x` #: b", 13),
    (b"a `# '` #: b", 8),
    (b"(case x in (x) echo ')';; esac) #: b", 32),
]
NO_COMMENT = [
    b"echo 'a #: b'",
    b'echo "a #: b"',
    rb"echo \#: b",
    rb"echo a\ #: b",
    b"echo a#: b",
    b"echo $(echo #: b\n)",
    b"echo `echo #: b`",
    b"echo ${x:-a #: b}",
    b'echo "${x:-a #: b}"',
    b'echo "$(echo "a #: b")"',
    b"echo \"`echo 'a #: b'`\"",
    b'echo "\'" "a #: b"',
    b"echo $(( 1 #: b ))",
    b"cat <<E\na #: b\nE\n",
    b'cat <<"E"\na #: b\n',
    b"echo $'a\\' #: b'",
    b"echo 'open #: b",
    b'echo "open #: b',
    b"(open #: b",
    b"echo ${#x} $#: b",
]


@pytest.mark.parametrize(("text", "at"), COMMENT)
def test_a_comment_is_found_where_a_word_could_begin(text: bytes, at: int) -> None:
    assert find_comments(text)[-1] == at


@pytest.mark.parametrize("text", NO_COMMENT)
def test_no_comment_is_found_in_quotes_words_and_substitutions(text: bytes) -> None:
    assert find_comments(text) == []


PIECES = ["'", '"', "\\", "$(", ")", "(", "`", "${x:-", "}", " #: ", "#", " # ", "a", " ", "$((1", "))", ";", "echo b"]
PIECES += ["\n", "<<E\n", "\nE\n", "|cat", "$#", "<<<"]


@given(st.lists(st.sampled_from(PIECES), max_size=12), st.integers(0, 40))
def test_a_text_may_come_in_parts_that_end_at_a_continued_line(pieces: list[str], cut: int) -> None:
    text = "".join(pieces).replace("\n", "").encode()
    first, second = text[:cut].rstrip(b"\\$`(<&)"), text[cut:]
    whole = first + b" \\\n" + second
    parts = CommentScanner().feed(first + b" \\").feed(b"\n" + second)
    assert parts.comments == find_comments(whole)


def test_a_hostile_line_takes_no_longer_than_others() -> None:
    for opener, inner in (("${", "'"), ("$(", "`x`"), ('"', "'"), ("(", "#")):
        find_comments((opener * 60_000 + inner * 60_000 + " #").encode())


WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@given(WORDS, WORDS, st.sampled_from(["'", '"']))
def test_options_are_never_eaten_from_a_quoted_string(before: str, after: str, quote: str) -> None:
    inside = f"{before} #: gpus=2 {after}".replace(quote, "").replace("\\", "").replace("`", "").replace("$", "")
    assert find_comments(f"echo {quote}{inside}{quote}".encode()) == []
