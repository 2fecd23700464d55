"""What `basalt import` did, as people read it."""

from collections.abc import Iterable, Iterator, Mapping

from basalt.importing.whole import Imported
from basalt.names import counted
from basalt.reporting.text import printable

_ENTRIES = {"queues": "queue", "priorities": "priority", "tiers": "tier"}
_PLURALS = {"priority": "priorities"}


def report(found: Imported, source: str, output: str, following: Iterable[str], *, quiet: bool) -> str:
    total = found.expressed + len(found.left)
    nodes = f"; {counted(found.nodes, 'node')} taken over" if found.nodes else ""
    lines = [f"{source} -> {output}: {found.expressed} of {counted(total, 'object')} in {_documents(found)}{nodes}"]
    if not quiet:
        lines += _rest(found)
        lines.append("next:")
        lines += [f"  {each}" for each in following]
    return "".join(f"{printable(line)}\n" for line in lines)


def _documents(found: Imported) -> str:
    parts = [counted(count, kind) for kind, count in found.documents.items()]
    inner = ", ".join(_number(count, _ENTRIES[part]) for part, count in found.entries.items())
    if inner:
        parts[0] += f" ({inner})"
    return ", ".join(parts)


def _number(count: int, what: str) -> str:
    return f"{count} {_PLURALS[what]}" if count != 1 and what in _PLURALS else counted(count, what)


def _rest(found: Imported) -> Iterator[str]:
    if found.left:
        yield f"kept as {'it is' if len(found.left) == 1 else 'they are'}:"
        yield from (f"  {each.object.position(())}: {each.object.ref}: {each.reason}" for each in found.left)
    if found.added:
        yield "compile adds:"
        yield from (f"  {each.ref}: {_WHY[each.ref.kind]}" for each in found.added)
    if found.labelled:
        yield f"compile labels {counted(found.labelled, 'object')}: app.kubernetes.io/managed-by: basalt"
    if found.cleaned:
        what = "status, metadata.managedFields and what else only servers and tools write"
        yield f"left behind of {counted(found.cleaned, 'object')}: {what}"
    yield from (
        f"left out: {each} (it tells kustomize where files are that are elsewhere now)" for each in found.left_out
    )
    if found.comments:
        yield f"comments left behind at {counted(len(found.comments), 'place')}:"
        yield from (f"  {place}" for place in found.comments)


_WHY: Mapping[str, str] = {
    "Namespace": "Volcano's own",
    "ConfigMap": "Basalt's default for the scheduler; import yours too, and it stays",
}
