"""How many processes and pods a container's launchers count on: the options of torchrun and its relatives, which end
where the script begins."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from basalt.pointers import Pointer
from basalt.views.containers import Container

_PROCESSES = ("--nproc-per-node", "--nproc_per_node")
_NODES = ("--nnodes",)
_PROGRAMS = frozenset({"torchrun", "deepspeed"})
_WITH_WORD = {"accelerate": "launch", "colossalai": "run"}
_MODULES = frozenset({
    "accelerate.commands.launch", "paddle.distributed.launch", "torch.distributed.launch", "torch.distributed.run",
})  # fmt: skip
_OF_VARIABLES = frozenset({"torchrun", "torch.distributed.launch", "torch.distributed.run"})  # they read PET_*
# What may stand before a launcher: the shell's own words, and programs that run another one.
_BEFORE = frozenset(
    "! { if while until then do else elif exec env time nohup sudo nice ionice timeout stdbuf setsid taskset numactl "
    "tini dumb-init mpirun mpiexec srun horovodrun ssh pdsh nsys ncu dlprof xvfb-run coverage conda micromamba poetry "
    "pipenv uv".split()
)
_PYTHON = re.compile(r"python[0-9.]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
# Options without a value (get_args_parser in torch/distributed/run.py, and its like in accelerate and deepspeed).
_FLAGS = frozenset(
    "--standalone --no-python --no_python --run-path --run_path --use-env --use_env --virtual-local-rank -q --quiet "
    "--cpu --debug --multi-gpu --multi_gpu --tpu --use-deepspeed --use_deepspeed --use-fsdp --use_fsdp "
    "--same-network --same_network --force_multi --no_local_rank --no_ssh --enable_each_rank_log".split()
)
_MODULE = ("-m", "--module")
_IS_SCRIPT = re.compile(r".*\.(?:py|sh)", re.DOTALL)
_RUNS_TEXT = re.compile(r"-[A-Za-z]*c")
_TOKEN = re.compile(
    r"(?P<space>(?:[ \t\r]|\\\n)+)|(?P<comment>\#[^\n]*)|(?P<end>[;&|()\n]+)"
    r"""|(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\$\([^()]*\)|`[^`]*`|\\.|[^\s;&|()'"`\\]|['"`\\])+)""",
    re.DOTALL,
)
_QUOTES = str.maketrans("", "", "\"'")
_VARIABLE = re.compile(r"\$[({]?([A-Za-z_][A-Za-z0-9_]*)[)}]?")
_NUMBER = re.compile(r"[0-9]{1,10}")
_RANGE = re.compile(r"([0-9]{1,10}):([0-9]{1,10})")
_Word = tuple[Pointer, str]


class Said(NamedTuple):
    """A number that a launcher was told, least and most where it is a range; text is how it was said."""

    text: str
    pointer: Pointer
    least: int
    most: int


class _Launch(NamedTuple):
    """A launcher, and the words between it and its script."""

    program: str
    options: list[_Word]

    @property
    def is_alone(self) -> bool:
        return any(text == "--standalone" for _, text in self.options)

    def option(self, names: Sequence[str]) -> tuple[str, _Word] | None:
        """The last of the options with such a name, and its value."""
        found = None
        for index, (pointer, text) in enumerate(self.options):
            name, equals, value = text.partition("=")
            if name in names and (equals or index + 1 < len(self.options)):
                found = name, (pointer, value) if equals else self.options[index + 1]
        return found


def processes(container: Container) -> Said | None:
    """The processes for each pod; None where the launcher counts them itself, or that is not known."""
    return _agreed(_said(container, each, _PROCESSES, "PET_NPROC_PER_NODE") for each in _launches(container))


def nodes(container: Container) -> Said | None:
    """The pods that train together; None where nothing is said, or each trains for itself."""
    together = (each for each in _launches(container) if not each.is_alone)
    return _agreed(_said(container, each, _NODES, "PET_NNODES") for each in together)


def _agreed(every: Iterable[Said | None]) -> Said | None:
    """What all launchers of a container say that say something; None where one prepares what another trains."""
    said = [each for each in every if each is not None]
    return said[0] if len({each[2:] for each in said}) == 1 else None


def _said(container: Container, launch: _Launch, names: Sequence[str], variable: str) -> Said | None:
    """An option counts before a variable."""
    if (found := launch.option(names)) is not None:
        name, (at, value) = found
        return _read(container, name, value, at)
    for name, pointer, text in container.environment if launch.program in _OF_VARIABLES else ():
        if name == variable and text is not None:
            return _read(container, name, text, (*pointer, "value"))
    return None


def _read(container: Container, name: str, value: str, pointer: Pointer) -> Said | None:
    meant = value
    if (variable := _VARIABLE.fullmatch(value)) is not None:
        meant = {each: text for each, _, text in container.environment if text is not None}.get(variable[1], "")
    if (bounds := _RANGE.fullmatch(meant)) is not None:
        return Said(f"{name}={value}", pointer, int(bounds[1]), int(bounds[2]))
    return Said(f"{name}={value}", pointer, int(meant), int(meant)) if _NUMBER.fullmatch(meant) else None


def _launches(container: Container) -> Iterator[_Launch]:
    for command in _commands(list(container.words)):
        if (launch := _launch(command)) is not None:
            yield launch


def _commands(words: list[_Word]) -> Iterator[list[_Word]]:
    """The command itself, and those in the text that it gives to a shell: sh -c "..."."""
    yield words
    if any(_PYTHON.fullmatch(_base(text)) for _, text in words[:1]):
        return  # python -c runs no shell's text
    for (_, before), (pointer, text) in pairwise(words):
        if _RUNS_TEXT.fullmatch(before):
            for command in _simple(pointer, text):
                yield from _commands(command)


def _simple(pointer: Pointer, text: str) -> Iterator[list[_Word]]:
    """The simple commands of a shell's text, without comments."""
    command: list[_Word] = []
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "word":
            command.append((pointer, token[0].translate(_QUOTES)))
        elif token.lastgroup == "end" and command:
            yield command
            command = []
    if command:
        yield command


def _launch(words: list[_Word]) -> _Launch | None:
    """The launcher that the command runs, itself or through another program."""
    first = next((index for index, (_, text) in enumerate(words) if not _ASSIGNMENT.fullmatch(text)), len(words))
    may_follow = True
    for index in range(first, len(words)):
        text, after = words[index][1], [each for _, each in words[index + 1 : index + 2]]
        program = _base(text)
        before = words[index - 1][1] if index else ""
        if program in _PROGRAMS or (before == "-m" and text in _MODULES):
            return _Launch(program, _options(words[index + 1 :]))
        if [_WITH_WORD.get(program)] == after:
            return _Launch(program, _options(words[index + 2 :]))
        if index == first:
            may_follow = program in _BEFORE or _PYTHON.fullmatch(program) is not None
        if not may_follow or _IS_SCRIPT.fullmatch(text):
            return None
    return None


def _options(words: list[_Word]) -> list[_Word]:
    """The words before the script: the first that is neither an option nor the value of one."""
    count = 0
    while count < len(words):
        text = words[count][1]
        if not text.startswith("-") or text in (*_MODULE, "--"):
            break
        takes_value = "=" not in text and text not in _FLAGS
        is_value = takes_value and count + 1 < len(words) and not _IS_SCRIPT.fullmatch(words[count + 1][1])
        count += 2 if is_value else 1
    return words[:count]


def _base(text: str) -> str:
    return text.rpartition("/")[2]
