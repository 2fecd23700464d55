"""What Basalt says of an environment, as `basalt fit` would."""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import yaml

from basalt.compiling import Compilation, compile_folder
from basalt.fit import reading, verdicts
from basalt.fit.problem import Problem
from basalt.fit.verdicts import State, Verdict
from tools.agreement.clusters import Drawn, Value


class Expected(NamedTuple):
    """The verdicts by the name of their jobs, in the order in which these are declared, and the problem behind them."""

    verdicts: dict[str, Verdict]
    problem: Problem


def expected(environment: Drawn) -> Expected:
    index = compiled(environment.documents()).index
    found = {each.job.key.name: each for each in verdicts.of(index)}
    return Expected({name: found[name] for name in environment.job_names()}, reading.read(index).problem)


def compiled(documents: Iterable[Value]) -> Compilation:
    """The documents as if they stood in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper)
        (Path(folder) / "all.yaml").write_text(text, encoding="utf-8")
        return compile_folder(Path(folder))


def called(verdict: Verdict) -> str:
    """The column of a verdict where it is about the job alone: there is nobody that it could wait for."""
    if verdict.state in (State.FITS, State.CONTENDED):
        return "tight" if verdict.tight else "fits"
    return verdict.state.value
