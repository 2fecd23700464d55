"""The largest gangs of a shape for a terminal, under the tree."""

from collections.abc import Iterator

from basalt.fit.shapes import Fitting
from basalt.names import counted
from basalt.quantities import show
from basalt.reporting.text import Paint, printable


def report(found: Fitting, paint: Paint) -> str:
    shape = ", ".join(f"{show(amount, name)} {name}" for name, amount in found.shape.items())
    lines = ["", paint.bold(printable(f"largest gang of pods that request {shape}"))]
    if found.cluster is None:
        return "\n".join([*lines, "no node inventory"]) + "\n"
    rows = [*_rows(found)]
    width = max(len(label) for label, _ in rows)
    lines.extend(f"{printable(label.ljust(width))}  {printable(gang)}" for label, gang in rows)
    if found.reason is not None:
        lines.append(printable(f"no node holds one: {found.reason.message}"))
    return "\n".join(lines) + "\n"


def _rows(found: Fitting) -> Iterator[tuple[str, str]]:
    for each in found.tiers:
        label = f"tier {each.tier}" + (f" {each.name}" if each.name else "")
        yield label, counted(each.pods, "pod") + (f" in {each.domain}" if each.domain else "")
    yield "the cluster", counted(found.cluster or 0, "pod")
