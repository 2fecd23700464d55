"""Writes docs/images/concepts/: the pictures of the concepts, boxes on a grid with arrows between them: `make docs`."""

import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.docs.writing import write  # noqa: E402  # the path comes first

FOLDER = ROOT / "docs" / "images" / "concepts"
_LETTER, _LINE, _PADDING = 7.2, 18, 12  # of text in pixels, on the wide side: no reader's font is known
_FILLS = {"plain": "#e8eef6", "good": "#dff0df", "bad": "#f8dedb", "note": "#fbf0d2"}
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#808080"/></marker></defs>'
)


class Box(NamedTuple):
    """A box at a place of the grid, which may be between two; its first line is bold where there are more."""

    column: float
    row: float
    text: str
    kind: str = "plain"

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")


class Arrow(NamedTuple):
    """From one box to another, by their names."""

    start: str
    end: str
    label: str = ""


class Picture(NamedTuple):
    """What it shows in one sentence, its boxes by name, and the arrows. wide and high are the gaps between boxes."""

    title: str
    boxes: dict[str, Box]
    arrows: tuple[Arrow, ...]
    wide: int = 60
    high: int = 40


class _Grid:
    """Where the boxes of a picture are; all have one size."""

    def __init__(self, picture: Picture) -> None:
        every = picture.boxes.values()
        self.width = max(len(line) for box in every for line in box.lines) * _LETTER + 2 * _PADDING
        self.height = max(len(box.lines) for box in every) * _LINE + 2 * _PADDING
        self.wide, self.high = picture.wide, picture.high

    def corner(self, box: Box) -> tuple[float, float]:
        return 10 + box.column * (self.width + self.wide), 10 + box.row * (self.height + self.high)

    def ends(self, start: Box, end: Box) -> tuple[float, float, float, float]:
        """Where an arrow between the two begins and ends: at the sides in one row, else at top and bottom."""
        (x, y), (to_x, to_y) = self.corner(start), self.corner(end)
        if abs(start.row - end.row) < 1 and start.column != end.column:
            forth = start.column < end.column
            return (
                (x + self.width if forth else x), y + self.height / 2,
                (to_x if forth else to_x + self.width), to_y + self.height / 2,
            )  # fmt: skip
        down = start.row < end.row
        return (
            x + self.width / 2, (y + self.height if down else y),
            to_x + self.width / 2, (to_y if down else to_y + self.height),
        )  # fmt: skip


def svg(picture: Picture) -> str:
    """The picture. Boxes are filled and lines grey, so that it reads on a light page and on a dark one."""
    grid = _Grid(picture)
    corners = [grid.corner(box) for box in picture.boxes.values()]
    width = max(x for x, _ in corners) + grid.width + 10
    height = max(y for _, y in corners) + grid.height + 10
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="sans-serif" font-size="13">',
        f"<title>{escape(picture.title)}</title>",
        _HEAD,
        *(_arrow(grid.ends(picture.boxes[each.start], picture.boxes[each.end]), each.label) for each in picture.arrows),
        *(_box(grid, box) for box in picture.boxes.values()),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _arrow(ends: tuple[float, float, float, float], label: str) -> str:
    x, y, to_x, to_y = ends
    way = f"M{x:.0f} {y:.0f}L{to_x:.0f} {to_y:.0f}"
    line = f'<path d="{way}" stroke="#808080" stroke-width="1.5" marker-end="url(#head)"/>'
    if not label:
        return line
    if y == to_y:  # above the line
        at = f'x="{(x + to_x) / 2:.0f}" y="{y - 6:.0f}" text-anchor="middle"'
    else:  # beside it
        at = f'x="{(x + to_x) / 2 + 8:.0f}" y="{(y + to_y) / 2 + 4:.0f}"'
    return f'{line}<text {at} fill="#808080">{escape(label)}</text>'


def _box(grid: _Grid, box: Box) -> str:
    x, y = grid.corner(box)
    size = f'width="{grid.width:.0f}" height="{grid.height:.0f}"'
    top = y + (grid.height - len(box.lines) * _LINE) / 2 + 13
    weights = ([' font-weight="bold"'] if len(box.lines) > 1 else [""]) + [""] * len(box.lines)
    texts = [
        f'<text x="{x + grid.width / 2:.0f}" y="{top + number * _LINE:.0f}" text-anchor="middle" fill="#1f2933"'
        f"{weights[number]}>{escape(line)}</text>"
        for number, line in enumerate(box.lines)
    ]
    frame = f'<rect x="{x:.0f}" y="{y:.0f}" {size} rx="5" fill="{_FILLS[box.kind]}" stroke="#808080"/>'
    return "\n".join([frame, *texts])


PICTURES = {
    "flow": Picture(
        "Documents, nodes and manifests become objects; objects are judged, and written where there is no error",
        {
            "documents": Box(0, 0, "documents\nEnvironment, Team,\nTrainingJob, Guardrail"),
            "nodes": Box(0, 1, "nodes\nkubectl get nodes\n-o json"),
            "raw": Box(0, 2, "manifests\nanyone's Kubernetes\nand Volcano YAML"),
            "objects": Box(1, 1, "objects\nHyperNodes, Queues,\nJobs, quotas, ..."),
            "findings": Box(2, 0, "findings\nrules and guardrails,\nwith file and line"),
            "verdicts": Box(2, 2, "verdicts\nwill each job run,\nand where"),
            "out": Box(2, 1, "manifests\nbuild/<env>/\none object a file", "good"),
            "report": Box(3, 0, "pull request\nreport, plan,\nannotations"),
            "apply": Box(3, 1, "cluster\nbasalt apply, pulumi\nup, Argo CD, Flux"),
        },
        (
            Arrow("documents", "objects"),
            Arrow("nodes", "objects"),
            Arrow("raw", "objects"),
            Arrow("objects", "findings"),
            Arrow("objects", "verdicts"),
            Arrow("objects", "out", "no error"),
            Arrow("findings", "report"),
            Arrow("out", "apply"),
        ),
        wide=84,
    ),
    "topology": Picture(
        "The label of each node names its rack, leaf and spine; domains become HyperNodes, and a gang gets one of them",
        {
            "label": Box(0, 0, "label of a node\nvolcano.sh/rack=\ns0-s1-rack-2", "note"),
            "tiers": Box(0, 1, "tiers, from the leaf up\nrack: the whole value\nleaf: ^(s\\d+-s\\d+)-"),
            "spine": Box(2.25, 0, "HyperNode s0\ntier 3, spine\n8 nodes"),
            "leaf1": Box(1.5, 1, "HyperNode s0-s1\ntier 2, leaf\n4 nodes", "good"),
            "leaf2": Box(3, 1, "HyperNode s0-s2\ntier 2, leaf\n4 nodes"),
            "rack1": Box(1, 2, "s0-s1-rack-1\ntier 1, rack\nte1, te2", "good"),
            "rack2": Box(2, 2, "s0-s1-rack-2\ntier 1, rack\nte3, te4", "good"),
            "gang": Box(0, 2, "gang\n6 pods of 4 GPUs\nhighestTier: leaf"),
        },
        (
            Arrow("label", "tiers"),
            Arrow("spine", "leaf1"),
            Arrow("spine", "leaf2"),
            Arrow("leaf1", "rack1"),
            Arrow("leaf1", "rack2"),
            Arrow("gang", "leaf1"),
        ),
        wide=30,
    ),
    "queues": Picture(
        "A tree of queues: what two teams are guaranteed and deserve fits what their parent is guaranteed and deserves",
        {
            "root": Box(0.5, 0, "root\nthe whole cluster\n64 GPUs"),
            "research": Box(0.5, 1, "research\nguarantee 48, deserved 64\ncapability 64"),
            "vision": Box(0, 2, "vision\nguarantee 32, deserved 40\ncapability 64"),
            "speech": Box(1, 2, "speech\nguarantee 16, deserved 24\ncapability 32"),
            "guarantee": Box(2, 0, "guarantee\nreserved, also while idle\n32 + 16 within 48", "note"),
            "deserved": Box(2, 1, "deserved\ncomes back when lent\n40 + 24 within 64", "note"),
            "capability": Box(2, 2, "capability\nnever more than that\neach within 64", "note"),
        },
        (
            Arrow("root", "research"),
            Arrow("research", "vision"),
            Arrow("research", "speech"),
        ),
        wide=36,
    ),
    "verdicts": Picture(
        "A job that cannot run on the empty cluster never runs; one that cannot run beside earlier ones is contended",
        {
            "job": Box(0, 0, "job\nthe pods that must\nstart together"),
            "alone": Box(1, 0, "alone?\ncan they be placed on\nthe empty cluster"),
            "together": Box(2, 0, "together?\nbeside those of\nhigher priority"),
            "fits": Box(3, 0, "fits\nplacement: pods\nfor each node", "good"),
            "never": Box(1, 1, "never\nthe constraint that\nbinds, and a change", "bad"),
            "contended": Box(2, 1, "contended\nthe jobs that\nit waits for", "note"),
            "tight": Box(3, 1, "tight\nVolcano, pod after pod,\ndoes not find it", "note"),
        },
        (
            Arrow("job", "alone"),
            Arrow("alone", "together", "yes"),
            Arrow("together", "fits", "yes"),
            Arrow("alone", "never", "proven: no"),
            Arrow("together", "contended", "proven: no"),
            Arrow("fits", "tight", "perhaps"),
        ),
    ),
    "merging": Picture(
        "An environment is read after the folders that it extends, and merged over them by JSON Merge Patch",
        {
            "base": Box(0, 0, "stacks/base\nhigh: {value: 100000}\ndebug: {value: 500}\nlow: {value: 1000}"),
            "prod": Box(0, 1, "stacks/prod\nextends: [../base]\nhigh: {value: 1000000}\ndebug: null"),
            "merged": Box(1, 0.5, "what counts\nhigh: {value: 1000000}\nlow: {value: 1000}", "good"),
        },
        (Arrow("base", "merged", "read first"), Arrow("prod", "merged", "read over it")),
        wide=110,
        high=24,
    ),
    "findings": Picture(
        "Rules and guardrails judge objects; a finding is an error, a warning, or waived with a reason",
        {
            "object": Box(0, 0.5, "object\ngenerated, or given\nas a manifest"),
            "rules": Box(1, 0, "rules\nwhat Kubernetes and\nVolcano really do"),
            "guardrails": Box(1, 1, "guardrails\nwhat this site\ndemands"),
            "finding": Box(2, 0.5, "finding\nplace, fact,\nway out"),
            "error": Box(3, 0, "error\nexit 1, nothing\nis written", "bad"),
            "warning": Box(3, 1, "warning\nfails with\n--strict only", "note"),
            "waived": Box(3, 2, "waived\nreported with its\nreason, never fails", "good"),
            "waiver": Box(2, 2, "basalt.dev/waive\n<rule>: <reason>\non the document"),
        },
        (
            Arrow("object", "rules"),
            Arrow("object", "guardrails"),
            Arrow("rules", "finding"),
            Arrow("guardrails", "finding"),
            Arrow("finding", "error"),
            Arrow("finding", "warning"),
            Arrow("waiver", "waived"),
        ),
        wide=44,
    ),
    "delivery": Picture(
        "The engine decides who installs charts; objects go to the cluster by Pulumi, kubectl, Argo CD or Flux",
        {
            "parts": Box(0, 1, "parts\ngpu, network,\nmetrics, ..."),
            "charts": Box(1, 0, "charts\nexact versions, with\ndigests in a lock"),
            "objects": Box(1, 2, "objects\nqueues, HyperNodes,\npolicies, jobs"),
            "pulumi": Box(2, 0, "engine: pulumi\nhelm.v3.Release of\nthe Pulumi program"),
            "argocd": Box(2, 1, "engine: argocd\nApplications in\n15-charts/"),
            "flux": Box(2, 2, "engine: flux\nHelmReleases in\n15-charts/"),
            "cluster": Box(3, 1, "cluster\nsame objects by\nevery way", "good"),
        },
        (
            Arrow("parts", "charts"),
            Arrow("parts", "objects"),
            Arrow("charts", "pulumi"),
            Arrow("charts", "argocd"),
            Arrow("charts", "flux"),
            Arrow("pulumi", "cluster"),
            Arrow("argocd", "cluster"),
            Arrow("flux", "cluster"),
        ),
        wide=50,
    ),
    "trust": Picture(
        "Data is read by every command; code of the project runs on request; what is remembered changes no answer",
        {
            "stacks": Box(0, 0, "stacks/\ndata: read by\nevery command"),
            "modules": Box(0, 1, "modules/\ncode of the project"),
            "known": Box(0, 2, "~/.cache/basalt\nwhat earlier runs found\nout about large inputs"),
            "compiler": Box(1.5, 1, "basalt\nno network, no cluster,\nno variables"),
            "build": Box(2.5, 1, "build/<env>/\nsame input, same bytes\nbasalt.json: digests", "good"),
        },
        (
            Arrow("stacks", "compiler"),
            Arrow("modules", "compiler", "--modules only"),
            Arrow("known", "compiler"),
            Arrow("compiler", "build"),
        ),
        wide=60,
    ),
}


def pictures() -> dict[str, str]:
    """Every picture by its file's name."""
    return {f"{name}.svg": svg(picture) for name, picture in PICTURES.items()}


def main() -> int:
    return write(FOLDER, pictures())


if __name__ == "__main__":
    sys.exit(main())
