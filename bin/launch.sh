# Sourced by the launchers, with `here` set to this folder: sets `root` and `venv`, and makes .venv where it is missing,
# unfinished, moved or older than pyproject.toml. Once that is done a start costs two milliseconds: no pip, no python.
#
# `extra` may name an extra to install too. .venv/ready (or ready-EXTRA) is written last and holds the checkout's path.

extra=${extra-}
root=$(cd "$here/.." && pwd -P) || exit 2
venv=$root/.venv
stamp=$venv/ready${extra:+-$extra}

is_ready() {
    made_for=
    [ -f "$1" ] && read -r made_for <"$1"
    [ "$made_for" = "$root" ] && [ -x "$venv/bin/python" ] && ! [ "$root/pyproject.toml" -nt "$1" ]
}

start() {
    exec "$venv/bin/python" -S "$root/bin/start.py" "$@"
}

say() {
    echo "simple_gpu_scheduler: $*" >&2
}

find_python() {
    for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
        if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then return 0; fi
    done
    return 1
}

with_uv() {
    command -v uv >/dev/null || return 1
    if ! [ -x "$venv/bin/python" ]; then uv venv --quiet --python '>=3.10' "$venv" || return 1; fi
    uv pip install --quiet --compile-bytecode --python "$venv/bin/python" --editable "$what"
}

with_pip() {
    if ! find_python; then
        say "no Python 3.10 or newer was found; install one (on Debian and Ubuntu: apt install python3 python3-venv), or uv"
        return 1
    fi
    if ! [ -x "$venv/bin/python" ] && ! "$python" -m venv "$venv" >/dev/null 2>&1; then
        # Debian's python3 has no ensurepip until python3-venv is installed; a pip of the system's serves as well.
        rm -rf "$venv"
        "$python" -m venv --without-pip "$venv" || return 1
    fi
    if "$venv/bin/python" -c 'import pip' 2>/dev/null; then
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$what"
    elif "$python" -m pip --python "$venv/bin/python" --version >/dev/null 2>&1; then
        "$python" -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check --editable "$what"
    else
        say "Python has no pip to install with; install it (on Debian and Ubuntu: apt install python3-venv), or uv"
        return 1
    fi
}

set_up() {
    what=$root${extra:+[$extra]}
    say "setting up $venv${extra:+ for the ${extra}s}, once; this takes a moment"
    # Without a finished .venv there is nothing to build on. With one, a run may be using it: it is brought up to date.
    if ! [ -f "$venv/ready" ] && ! [ -f "$stamp" ]; then rm -rf "$venv"; fi
    made_for=
    [ -f "$venv/ready" ] && read -r made_for <"$venv/ready"
    if [ "$made_for" != "$root" ]; then rm -rf "$venv"; fi
    log=$(mktemp) || return 1
    if ! { with_uv || with_pip; } >"$log" 2>&1; then
        cat "$log"
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
    # Compiled now, since an environment may forbid it later (PYTHONDONTWRITEBYTECODE).
    "$venv/bin/python" -m compileall -q "$root/simple_gpu_scheduler"
    for done_stamp in "$venv/ready" "$stamp"; do
        echo "$root" >"$done_stamp.new" && mv "$done_stamp.new" "$done_stamp" || return 1
    done
}

if ! is_ready "$stamp"; then
    # Two first starts at once: the second waits and finds it done. What is in stdin is the jobs', not the installer's.
    (
        if command -v flock >/dev/null; then flock 9; fi
        is_ready "$stamp" || set_up
    ) 9>"$root/.venv.lock" </dev/null >&2 || {
        say "setup failed; fix the problem above and run the command again"
        exit 2
    }
fi
