"""Settings shared by all tests. docs/testing.md says what randomised tests draw, and how to draw it again."""

import gc
import os
import random
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

# A run must not depend on the speed of the machine: hypothesis has limits of time for examples and for drawing them.
# A failing example prints the blob that reproduces it (@reproduce_failure).
settings.register_profile(
    "p4gen",
    settings.get_profile("default"),
    print_blob=True,
    deadline=None,
    derandomize=False,  # see --seed
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("p4gen")

# Hypothesis draws some numbers from the source code of the modules that are loaded, which are others in each process
# that runs a part of the tests: then the same seed would not draw the same.
_NO_CONSTANTS = Constants()
assert callable(providers._get_local_constants)
providers._get_local_constants = lambda: _NO_CONSTANTS


# Children inherit what is ignored or blocked: SIGHUP under nohup, SIGINT and SIGQUIT in the background of a shell
# without job control. Tests that send these signals must hold however they were started.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))

# Compiled programs are many objects, and pytest's own are more: with Python's thresholds, looking at all of them took a
# fourth of the time.
gc.set_threshold(50_000, 20, 20)

SEED = 1
"""The seed of runs that are given none. It is the same every time: what a change did not break must not fail."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """What randomised tests draw, and how much of it."""
    parser.addoption(
        "--seed", type=int, default=None, help=f"Seed of all that tests draw.  [P4GEN_SEED, or {SEED}; --full draws it]"
    )
    parser.addoption("--full", action="store_true", help="Everything, where a test takes a sample.")


SAMPLE = "sample(N): of this test's cases N are run, drawn by the seed; with --full, or named by itself, all of them"
LONG = "long: of a folder's long tests a fifth are run, drawn by the seed; with --full, or named by itself, all of them"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Settle the seed: for tests, for hypothesis, for commands that tests run, and for workers of xdist."""
    given = config.option
    for marker in (SAMPLE, LONG):
        config.addinivalue_line("markers", marker)
    if given.seed is None:
        drawn = random.SystemRandom().randrange(1 << 32) if given.full else SEED
        given.seed = int(os.environ.get("P4GEN_SEED", drawn))
    if given.hypothesis_seed is None:
        given.hypothesis_seed = str(given.seed)
    os.environ["P4GEN_SEED"] = str(given.seed)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``_not_drawn`` says, unless with ``--full``, or where tests are named."""
    if config.option.full or any("::" in argument for argument in config.args):
        return
    dropped = _not_drawn(items, config.option.seed)
    if dropped:
        config.hook.pytest_deselected(items=[item for item in items if item in dropped])
        items[:] = [item for item in items if item not in dropped]


def _not_drawn(items: list[pytest.Item], seed: int) -> set[pytest.Item]:
    """What is not run: of a test's cases all but a ``sample(N)``, and all cases of four fifths of a folder's ``long``
    tests."""
    cases: dict[str, list[pytest.Item]] = {}
    long: dict[Path, dict[str, list[pytest.Item]]] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if item.get_closest_marker("sample"):
            cases.setdefault(name, []).append(item)
        if item.get_closest_marker("long"):
            long.setdefault(item.path.parent, {}).setdefault(name, []).append(item)
    dropped = set[pytest.Item]()
    for name, group in cases.items():
        (count,) = group[0].get_closest_marker("sample").args  # type: ignore[union-attr]  # all of the group have it
        dropped.update(random.Random(f"{seed} {name}").sample(group, max(0, len(group) - count)))
    for folder, tests in long.items():
        for group in random.Random(f"{seed} {folder.name}").sample(list(tests.values()), len(tests) * 4 // 5):
            dropped.update(group)
    return dropped


def pytest_collection_finish() -> None:
    """Leave what is there before the first test out of collections: it stays until the end."""
    gc.collect()
    gc.freeze()


def pytest_report_header(config: pytest.Config) -> str:
    """The seed, at the start."""
    return f"seed: {config.option.seed}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The seed once more, beside failures."""
    if any(terminalreporter.stats.get(kind) for kind in ("failed", "error")):
        terminalreporter.write_line(f"seed {config.option.seed}: pytest --seed {config.option.seed} draws the same")


@pytest.fixture(scope="session")
def seed(pytestconfig: pytest.Config) -> int:
    """The seed of tests that draw by themselves."""
    found: int = pytestconfig.option.seed
    return found
