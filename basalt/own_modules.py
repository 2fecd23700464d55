"""A project's own modules: what modules/NAME.py of the project makes of spec.modules.NAME of its Environment.

They are code. An environment is data, which is judged before anybody trusts it: so they run only where the user says
so, and what they get wrong is a finding.
"""

import contextlib
import copy
import importlib.util
import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from basalt import names
from basalt.api.schemas import Shape
from basalt.findings import Problem
from basalt.gathering.documents import Declaration, ref_of
from basalt.loading import files
from basalt.loading.sources import SourceFile
from basalt.objects import Manifest, mapping
from basalt.platform import Platform
from basalt.pointers import Pointer

FOLDER = "modules"
_AT: Pointer = ("spec", "modules")
_ORIGINS = 'write them as {("spec", "replicas"): ("size",)}'
_WAY = "give --modules where you trust this project's code"


class Made(NamedTuple):
    """The manifests of each module, by its file, what is wrong with them, and the files that were run."""

    parts: tuple[tuple[str, tuple[Manifest, ...]], ...] = ()
    problems: tuple[Problem, ...] = ()
    files: tuple[SourceFile, ...] = ()


class _Fault(Exception):
    """What is wrong with a module, and the way out."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def make(environment: Declaration, platform: Platform, project: Path | None) -> Made:
    """What the modules that the Environment names make; project is the folder of the project, None where its code may
    not run."""
    parts: list[tuple[str, tuple[Manifest, ...]]] = []
    problems: list[Problem] = []
    read: list[SourceFile] = []
    for name, declared in mapping(environment.spec.get("modules")).items():
        file = f"{FOLDER}/{name}.py"
        try:
            path = _path(_trusted(project, file), name, file)
            read.extend(_sources(path))
            module = _loaded(path, name, file)
            faults = [*_shape(module, file).faults(declared)]
            problems.extend(
                Problem(environment, (*_AT, name, *fault.pointer), fault.message, fault.hint) for fault in faults
            )
            if not faults:
                given = copy.deepcopy(declared), _copied(platform)
                parts.append((file, tuple(_manifests(module, *given, name, file))))
        except _Fault as fault:
            problems.append(Problem(environment, (*_AT, name), str(fault), fault.hint))
    return Made(tuple(parts), tuple(problems), tuple(read))


def _copied(platform: Platform) -> Platform:
    """The platform to give away: everything else is made from the declaration, which a module could change."""
    spec, teams = copy.deepcopy((platform.spec, platform.teams))
    return platform._replace(spec=spec, teams=teams, node_source=cache(lambda: copy.deepcopy(platform.node_source())))


def _trusted(project: Path | None, file: str) -> Path:
    if project is None:
        raise _Fault(f"{file} is code of this project, and is not run", _WAY)
    return project


def _path(project: Path, name: str, file: str) -> Path:
    folder = project / FOLDER
    path = folder / name / "__init__.py" if (folder / name / "__init__.py").is_file() else folder / f"{name}.py"
    if not path.is_file():
        known = [each.stem for each in folder.glob("*.py") if each.stem != "__init__"] if folder.is_dir() else []
        raise _Fault(f"no file {file} in the project", names.did_you_mean(name, known, otherwise="write it"))
    if not path.resolve().is_relative_to(project.resolve()):
        raise _Fault(f"{file} leads out of the project", "put the file itself there")
    return path


def _sources(path: Path) -> Iterator[SourceFile]:
    """The module's files, which the output follows from as it does from documents."""
    paths = sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else [path]
    for each in paths:
        file = files.source(each)
        files.load(file)
        yield file


def _loaded(path: Path, name: str, file: str) -> ModuleType:
    # A name of its own, since `modules` is Basalt's; loaded anew each time, since a run may see two revisions of it.
    spec = importlib.util.spec_from_file_location(f"basalt_own_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    with _blamed(file, path):
        spec.loader.exec_module(module)
    return module


def _shape(module: ModuleType, file: str) -> Shape:
    shape = Shape(mapping(getattr(module, "SCHEMA", None)))
    if not shape.is_sound:
        raise _Fault(f"SCHEMA of {file} is no JSON Schema")
    return shape


def _manifests(module: ModuleType, declared: Any, platform: Platform, name: str, file: str) -> Iterator[Manifest]:
    function = getattr(module, "manifests", None)
    if not callable(function):
        raise _Fault(f"{file} has no function manifests", "write: def manifests(declared, platform)")
    with _blamed(file, Path(str(module.__file__))):
        made = [_checked(each, file, (*_AT, name)) for each in function(declared, platform)]
    yield from made


def _checked(made: Any, file: str, at: Pointer) -> Manifest:
    """What the module made as a manifest of plain values, with a name."""
    value, origins = made if isinstance(made, Manifest) else (made, {})
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()  # half a surrogate pair is no text
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise _Fault(f"{file} makes something that is no plain value: {error}") from None
    ref = ref_of(value)
    if ref is None or not ref.api_version or not ref.name:
        raise _Fault(f"{file} makes something without apiVersion, kind and metadata.name")
    return Manifest(value, {(): at, **_below(origins, at, file)})


def _below(origins: Any, at: Pointer, file: str) -> dict[Pointer, Pointer]:
    """The origins, which a module gives from its own part on."""
    if not isinstance(origins, Mapping):
        raise _Fault(f"{file} gives origins that are no map", _ORIGINS)
    for each in (pointer for pair in origins.items() for pointer in pair):
        if not isinstance(each, tuple) or not all(isinstance(step, str | int) for step in each):
            raise _Fault(f"{file} gives origins with {each!r}, which is no tuple of keys and indexes", _ORIGINS)
    return {pointer: (*at, *origin) for pointer, origin in origins.items()}


@contextlib.contextmanager
def _blamed(file: str, path: Path) -> Iterator[None]:
    """What a module raises as its fault, with its line; what it prints goes to stderr, and no bytecode is left."""
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except (KeyboardInterrupt, _Fault):
        raise
    except BaseException as error:  # noqa: BLE001 (whatever a site's code does is its own fault)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        shown = " ".join(f"{type(error).__name__}: {_said(error)}".split())
        raise _Fault(f"{file}:{line or 1}: {shown}", "mend the module") from None
    finally:
        sys.dont_write_bytecode = writes


def _said(error: BaseException) -> str:
    """What it says, as far as that is text."""
    try:
        said = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception:  # noqa: BLE001 (its words are a site's code, too)
        return "it has no words"
    return said.encode("utf-8", "backslashreplace").decode()
