"""The topology as nested boxes: domains by tier, in them nodes, in these one cell for each GPU.

A cell has the colour and the number of the gang that takes it. In a cluster too large for that, domains stand for
their nodes, with bars in the place of cells.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from basalt.names import counted
from basalt.quantities import Resources, add, parse_map, show
from basalt.reporting.markup import Markup, tag

COLOURS = 10
_CELLS = 16  # drawn one by one; more devices on a node are a bar
_CELL = 18  # its side, and the gap after it
_CHIPS = 12  # gangs that are named at a domain

Facts = Mapping[str, Any]


class Gang(NamedTuple):
    """A gang in the picture: its number, and the job as namespace/name."""

    number: int
    name: str

    @property
    def colour(self) -> str:
        return f"g{(self.number - 1) % COLOURS}"

    def chip(self) -> Markup:
        return tag("a", str(self.number), class_=f"chip {self.colour}", href=f"#gang-{self.number}", title=self.name)


def numbered(jobs: Iterable[Facts]) -> dict[str, Gang]:
    """The jobs that fit, by Kind/namespace/name, in the order of their verdicts."""
    fitting = [job for job in jobs if job["verdict"] == "fits"]
    return {
        f"{job['kind']}/{job['namespace']}/{job['name']}": Gang(number, f"{job['namespace']}/{job['name']}")
        for number, job in enumerate(fitting, start=1)
    }


class _Drawn(NamedTuple):
    """A part of the picture, with what lies in it."""

    shown: Markup
    offers: Resources
    free: Resources
    gangs: frozenset[Gang]


def drawing(topology: Facts, occupancy: Facts, jobs: Sequence[Facts], shrunk: Mapping[str, Facts]) -> Markup:
    """The whole picture; shrunk are a plan's domains that changed, by name."""
    draw = _Drawing(occupancy, numbered(jobs), shrunk)
    parts = [*map(draw.branch, topology["tree"]), *draw.outside()]
    return tag("ul", *(part.shown for part in parts), class_="domains")


class _Drawing:
    def __init__(self, occupancy: Facts, gangs: Mapping[str, Gang], shrunk: Mapping[str, Facts]) -> None:
        self._are_nodes = occupancy["drawn"] == "nodes"
        self._gangs = gangs
        self._shrunk = shrunk
        self._units: dict[str | None, list[Facts]] = {}
        for unit in occupancy["units"]:
            self._units.setdefault(unit["domain"], []).append(unit)

    def branch(self, branch: Facts) -> _Drawn:
        """A domain with all that is in it."""
        own = self._units.get(branch["name"], [])
        is_drawn_whole = not self._are_nodes and any(unit["name"] == branch["name"] for unit in own)
        nodes = [*map(self.unit, own)]
        below = [] if is_drawn_whole else [self.branch(child) for child in branch["children"]]
        inner = [tag("ul", *(part.shown for part in nodes), class_="nodes")] if nodes else []
        inner += [tag("ul", *(part.shown for part in below), class_="domains")] if below else []
        return self._boxed(branch, [*nodes, *below], inner)

    def outside(self) -> Iterator[_Drawn]:
        """What is in no HyperNode."""
        units = [*map(self.unit, self._units.get(None, []))]
        if units:
            facts = {"name": "in no HyperNode", "tierName": None, "tier": None, "nodeCount": None}
            yield self._boxed(facts, units, [tag("ul", *(unit.shown for unit in units), class_="nodes")])

    def _boxed(self, branch: Facts, parts: Sequence[_Drawn], inner: Sequence[Markup]) -> _Drawn:
        offers, free = add(*(part.offers for part in parts)), add(*(part.free for part in parts))
        gangs = frozenset[Gang]().union(*(part.gangs for part in parts))
        tier = branch["tierName"] or (f"tier {branch['tier']}" if branch["tier"] is not None else "")
        count = [counted(branch["nodeCount"], "node")] if branch["nodeCount"] is not None else []
        facts = ", ".join([*count, *_left(offers, free)])
        head = [tag("b", branch["name"], class_="name"), *([tag("span", tier, class_="tier")] if tier else [])]
        head += [tag("span", facts, class_="facts"), *self._change(branch["name"]), *_chips(gangs)]
        shown = tag("li", tag("div", *head, class_="head"), *inner, class_="domain")
        return _Drawn(shown, offers, free, gangs)

    def _change(self, name: str) -> list[Markup]:
        changed = self._shrunk.get(name)
        if changed is None:
            return []
        before, after = changed["before"] or 0, changed["after"] or 0
        return [tag("span", f"was {counted(before, 'node')}", class_="bad" if after < before else "good")]

    def unit(self, unit: Facts) -> _Drawn:
        """One node, or one domain drawn as if it were one."""
        offers, free = parse_map(unit["offers"]), parse_map(unit["free"])
        shares = [(self._gangs[each["job"]], parse_map(each["takes"]), each["pods"]) for each in unit["gangs"]]
        left = [*_left(offers, free)] or [f"no {'accelerators' if not unit['closedNodes'] else 'new pods'}"]
        said = ", ".join(f"{gang.name} {counted(pods, 'pod')}" for gang, _, pods in shares) or "no gang"
        pictures = [
            _picture(f"{unit['name']}: {said}", resource, offers[resource], free[resource], shares)
            for resource in sorted(offers)
        ]
        bare = [gang.chip() for gang, takes, _ in shares if not any(takes.values())]
        closed = _closed(unit) if unit["closedNodes"] else []
        name = [tag("span", unit["name"], class_="name", title=unit["name"])] if self._are_nodes else []
        shown = tag(
            "li",
            *name,
            *pictures,
            tag("span", ", ".join(left), class_="left"),
            *closed,
            *bare,
            class_="unit closed" if unit["closedNodes"] == unit["nodes"] else "unit",
            title=f"{unit['name']}: {', '.join(left)}; {said}",
        )
        return _Drawn(shown, offers, free, frozenset(gang for gang, _, _ in shares))


def _closed(unit: Facts) -> list[Markup]:
    is_all = unit["closedNodes"] == unit["nodes"]
    return [tag("span", "takes no pods" if is_all else f"{unit['closedNodes']} take no pods", class_="left")]


def _left(offers: Resources, free: Resources) -> Iterator[str]:
    for resource in sorted(offers):
        yield f"{show(free.get(resource, 0), resource)} of {show(offers[resource], resource)} {_short(resource)} free"


def _short(resource: str) -> str:
    """nvidia.com/gpu is gpu to whoever looks at a picture."""
    return resource.rpartition("/")[2]


def _chips(gangs: Iterable[Gang]) -> list[Markup]:
    ordered = sorted(gangs)
    if not ordered:
        return []
    rest = [tag("span", f"and {len(ordered) - _CHIPS} more")] if len(ordered) > _CHIPS else []
    return [tag("span", *(gang.chip() for gang in ordered[:_CHIPS]), *rest, class_="chips")]


def _picture(said: str, resource: str, offers: Any, free: Any, shares: Sequence[tuple[Gang, Resources, int]]) -> Markup:
    """What is taken of one resource: cells where there are few, else a bar."""
    taken = [(gang, takes[resource]) for gang, takes, _ in shares if takes.get(resource)]
    label = f"{said}; {show(free, resource)} of {show(offers, resource)} {resource} free"
    whole = all(amount == int(amount) for amount in (offers, *(amount for _, amount in taken)))
    if whole and 0 < offers <= _CELLS and resource != "cpu":
        return _cells(label, int(offers), [gang for gang, amount in taken for _ in range(int(amount))])
    return _bar(label, offers, taken)


def _cells(label: str, count: int, taken: Sequence[Gang]) -> Markup:
    columns = 4 if count <= 8 else 8
    rows = -(-count // columns)
    found = [_cell(place, columns, taken[place] if place < len(taken) else None) for place in range(count)]
    return tag(
        "svg", *found, class_="cells", role="img", aria_label=label,
        width=str(min(count, columns) * _CELL), height=str(rows * _CELL),
    )  # fmt: skip


def _cell(place: int, columns: int, gang: Gang | None) -> Markup:
    x, y = place % columns * _CELL, place // columns * _CELL
    side = str(_CELL - 2)
    box = {"x": str(x + 1), "y": str(y + 1), "width": side, "height": side, "rx": "3"}
    if gang is None:
        return tag("rect", tag("title", "free"), class_="free", **box)
    number = tag("text", str(gang.number), x=str(x + _CELL / 2), y=str(y + _CELL / 2))
    return tag("g", tag("title", gang.name), tag("rect", **box), number, class_=gang.colour)


def _bar(label: str, offers: Any, taken: Iterable[tuple[Gang, Any]]) -> Markup:
    parts, at = [tag("rect", class_="free", x="0", y="0", width="100", height="10")], 0.0
    for gang, amount in taken:
        width = round(float(amount / offers) * 100, 2) if offers else 0.0
        title = tag("title", gang.name)
        parts.append(tag("rect", title, class_=gang.colour, x=f"{at:g}", y="0", width=f"{width:g}", height="10"))
        at += width
    return tag(
        "svg", *parts, class_="bar", role="img", aria_label=label, viewBox="0 0 100 10", preserveAspectRatio="none"
    )
