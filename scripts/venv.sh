# Sourced by scripts/p4gen and scripts/test: makes .venv on first use, and again when pyproject.toml, constraints.txt,
# ptf.txt or shell.txt change; all packages have the versions of these files.
# Usage: make_venv EXTRAS     (EXTRAS: '' or '[dev]')

fail() {
    printf '%s\n' "p4gen: error: $*" >&2
    exit 3
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    fail 'Python 3.11 or newer is needed; none found (set PYTHON to name one)'
}

make_venv() {
    stamp=".venv/.p4gen$1-$(cat pyproject.toml scripts/constraints.txt scripts/ptf.txt scripts/shell.txt | cksum | tr ' ' '-')"
    [ -e "$stamp" ] && return
    if [ ! -x .venv/bin/python ]; then
        python=$(find_python) || exit 3
        echo "p4gen: making .venv with $($python --version) (once)" >&2
        "$python" -m venv .venv || fail "cannot make a virtual environment; on Debian: apt-get install python3-venv"
    fi
    echo "p4gen: installing p4gen$1 and what it needs into .venv (once)" >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint scripts/constraints.txt \
        --editable ".$1" ||
        fail 'pip could not install p4gen with the versions of scripts/constraints.txt; see above'
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement scripts/ptf.txt ||
        fail 'pip could not install PTF; see above'
    [ -x .venv/shell/bin/python ] || .venv/bin/python -m venv --without-pip .venv/shell
    .venv/bin/python -m pip --python .venv/shell install --quiet --disable-pip-version-check \
        --requirement scripts/shell.txt ||
        fail 'pip could not install p4runtime-shell; see above'
    : >"$stamp"
}
