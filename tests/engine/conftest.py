"""The real Pulumi engine, a provider for it, and a sandbox to apply to."""

import asyncio
import sys
from collections.abc import Iterator

import pytest

from basalt.sandbox.go_programs import Refusal
from tests.engine import plugins
from tests.engine.stacks import Engine
from tests.sandbox.conftest import built, empty
from tools.engine import programs

__all__ = ["built", "empty"]  # fixtures
_SAID = pytest.StashKey[str]()
_LOOPS: list[asyncio.AbstractEventLoop] = []


@pytest.fixture(scope="package", autouse=True)
def closed_loops() -> Iterator[None]:
    """The Automation API leaves the event loops of inline programs open, also those that fixtures of modules run.

    A program may outlive the command that ran it: its loop is kept, so that no later test is told of it.
    """
    make = asyncio.new_event_loop

    def kept() -> asyncio.AbstractEventLoop:
        loop = make()
        _LOOPS.append(loop)
        return loop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", kept)
        yield
    for loop in _LOOPS:
        if not loop.is_running():
            loop.close()


@pytest.fixture(scope="session")
def engine(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """The engine; it takes five minutes where the cache has none."""
    try:
        made, provider = plugins.engine(
            tmp_path_factory.mktemp("engine"), lambda line: print(line, file=sys.__stderr__, flush=True)
        )
    except Refusal as refusal:
        pytest.skip(str(refusal))
    pytestconfig.stash[_SAID] = f"engine: Pulumi {programs.VERSION} with {provider}"
    return made


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says which provider the tests had."""
    if said := config.stash.get(_SAID, None):
        terminalreporter.write_line(said)
