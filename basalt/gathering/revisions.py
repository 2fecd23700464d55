"""An environment as it was at a revision of the git repository: REV:ENV. Its files are written into a folder of their
own for as long as they are read; nothing else on the disk is touched.

One of the few places that touch the file system.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from basalt import names
from basalt.loading.files import SUFFIXES
from basalt.loading.sources import Misuse

_PROJECT = "Pulumi.yaml"
_LINK, _FILE = "120000", "100"  # the modes of a symbolic link, and how those of files begin
_BLOCK = 1024**2


class _Entry(NamedTuple):
    """One file of the revision: its mode and the name of its content."""

    mode: str
    blob: str


_Tree = Mapping[PurePosixPath, _Entry]


def is_named(argument: str, stacks: str = "stacks") -> bool:
    """Whether the argument of a command names an environment at a revision: it has a colon, and is no path."""
    if ":" not in argument or "\0" in argument:
        return False
    return not any(map(os.path.lexists, (argument, os.path.join(stacks, argument))))


@contextlib.contextmanager
def environment_at(argument: str, stacks: str = "stacks") -> Iterator[Path]:
    """The folder (or file) of REV:ENV. Meanwhile the current folder is the one that stands for it in the revision, so
    that every file has the name that it has in a checkout. Raises Misuse where there is no such environment."""
    revision, _, environment = argument.rpartition(":")
    git = _Git(argument)
    tree = git.tree(revision)
    here = PurePosixPath(git.prefix())
    found = _found(tree, here, environment, stacks)
    if found is None:
        message = f"no environment {environment} in {revision}: neither a path nor a folder under {stacks}/"
        known = {each.name for each in _folders(tree) if each.parent == _project_of(tree, here) / stacks}
        raise Misuse(f"{message} of that revision; {names.did_you_mean(environment, known)}".rstrip("; "))
    with tempfile.TemporaryDirectory(prefix="basalt-") as folder:
        root = Path(folder).resolve()
        try:
            git.write(_inputs(tree, _project_of(tree, found)), root)
            # A .git is where a project ends that has no Pulumi.yaml, here as in the repository.
            for each in (root / ".git", root / here, *([] if found in tree else [root / found])):
                each.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Misuse(f"cannot read {argument}: {error.strerror}") from None
        with contextlib.chdir(root / here):
            yield Path(os.path.relpath(root / found))


def _found(tree: _Tree, here: PurePosixPath, environment: str, stacks: str) -> PurePosixPath | None:
    """The path that ENV stands for: as from the current folder, a name under stacks/ here or in the project, or a path
    from the root of the repository, as git itself takes it."""
    folders = _folders(tree)
    places = (here, here / stacks, _project_of(tree, here) / stacks, PurePosixPath())
    for place in places if environment else ():
        path = PurePosixPath(os.path.normpath(place / environment))
        if path in tree or path in folders:
            return path
    return None


def _folders(tree: _Tree) -> set[PurePosixPath]:
    found: set[PurePosixPath] = set()
    for path in tree:
        for parent in path.parents:
            if parent in found:
                break
            found.add(parent)
    return found


def _project_of(tree: _Tree, path: PurePosixPath) -> PurePosixPath:
    """The nearest folder with a Pulumi.yaml, else the root."""
    above = (path, *path.parents)
    return next((each for each in above if each / _PROJECT in tree), PurePosixPath())


def _inputs(tree: _Tree, project: PurePosixPath) -> _Tree:
    """What can be read of the project, its own modules included: other files are left where they are."""
    code = project / "modules"
    return {
        path: entry
        for path, entry in tree.items()
        if path.is_relative_to(project)
        and (
            path.name.endswith(SUFFIXES) or entry.mode == _LINK or (path.is_relative_to(code) and path.suffix == ".py")
        )
    }


class _Git:
    """Questions to git about the repository of the current folder; argument is what they are asked for."""

    def __init__(self, argument: str) -> None:
        self._argument = argument

    def prefix(self) -> str:
        """The current folder, as from the root of the repository."""
        return self._ask("rev-parse", "--show-prefix").removesuffix("\n")

    def tree(self, revision: str) -> _Tree:
        """Every file of the revision."""
        self.prefix()  # a folder in no repository is told before an unknown revision
        name = "" if not revision or revision.startswith("-") else self._name(revision)
        if not name:
            is_shallow = self._ask("rev-parse", "--is-shallow-repository").strip() == "true"
            hint = "; this clone is shallow: git fetch --unshallow" if is_shallow else ""
            raise self._refusal(f"no revision {revision or '(empty)'} in this repository{hint}")
        listed = self._ask("ls-tree", "-r", "-z", "--full-tree", name)
        return dict(_entries(listed))

    def _name(self, revision: str) -> str:
        done = self._run("rev-parse", "--verify", "--quiet", f"{revision}^{{tree}}")
        return done.stdout.decode().strip() if done.returncode == 0 else ""

    def write(self, tree: _Tree, root: Path) -> None:
        """Writes the files under the root; links last, so that none is written through. One that leads out of the root,
        where nothing of the revision is, leads nowhere."""
        paths = sorted(tree, key=lambda path: (tree[path].mode == _LINK, path))
        command = ["git", "cat-file", "--batch"]
        with tempfile.TemporaryFile() as asked:
            asked.write("".join(f"{tree[path].blob}\n" for path in paths).encode())
            asked.seek(0)
            with subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                for path in paths:
                    self._write_one(process, root / path, is_link=tree[path].mode == _LINK)
        for link in (root / path for path in paths if tree[path].mode == _LINK):
            if not Path(os.path.realpath(link)).is_relative_to(root):
                link.unlink()
                link.symlink_to(f"{link.name} leads out of the revision")

    def _write_one(self, process: "subprocess.Popen[bytes]", path: Path, *, is_link: bool) -> None:
        assert process.stdout is not None
        header = process.stdout.readline().split()
        if len(header) != 3:
            raise self._refusal(f"git has no content of {path.name}")
        left = int(header[2])
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_link:
            os.symlink(process.stdout.read(left), os.fsencode(path))
            left = 0
        else:
            with open(path, "wb") as handle:
                while left and (block := process.stdout.read(min(left, _BLOCK))):
                    handle.write(block)
                    left -= len(block)
        process.stdout.read(1)  # the newline behind each

    def _ask(self, *arguments: str) -> str:
        done = self._run(*arguments)
        if done.returncode != 0:
            words = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
            raise self._refusal(words.removeprefix("fatal: ") or "git failed")
        return os.fsdecode(done.stdout)

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        try:
            return subprocess.run(["git", *arguments], capture_output=True, check=False)
        except OSError as error:
            raise self._refusal(f"cannot run git: {error.strerror}") from None

    def _refusal(self, why: str) -> Misuse:
        return Misuse(f"cannot read {self._argument}: {why}")


def _entries(listed: str) -> Iterator[tuple[PurePosixPath, _Entry]]:
    for line in filter(None, listed.split("\0")):
        described, _, name = line.partition("\t")
        mode, _, blob = described.split(" ")[:3]
        path = PurePosixPath(name)
        if (mode == _LINK or mode.startswith(_FILE)) and not path.is_absolute() and ".." not in path.parts:
            yield path, _Entry(mode, blob)
