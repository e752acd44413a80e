"""Settings shared by all tests."""

import signal

import pytest
from hypothesis import settings

# A failing example prints the blob that reproduces it (@reproduce_failure), so every randomised test names its seed.
settings.register_profile("p4gen", print_blob=True, deadline=None)
settings.load_profile("p4gen")


# Children inherit what is ignored: SIGHUP under nohup, SIGINT and SIGQUIT in the background of a shell without job
# control. Tests that send these signals must hold however they were started.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """What randomised tests of our own draw, and how much of it."""
    parser.addoption("--seed", type=int, default=None, help="Seed of tests that draw one.  [drawn, and printed]")
    parser.addoption("--full", action="store_true", help="Everything, where a test takes a sample.")
