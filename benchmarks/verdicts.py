"""What `basalt fit` costs against nodes and against jobs, and where packing is hard; and what the same verdicts add to
`basalt check`, which gives them too."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import clusters, processes
from benchmarks.page import Figures, Section, table
from benchmarks.plot import Plot

NODES, JOBS = (1_000, 2_500, 5_000, 10_000, 20_000), 250  # so many jobs on each of these
MANY_JOBS, MANY_NODES = (50, 100, 250, 500, 1_000, 2_000), 10_000  # and each of these on so many nodes
AIM_AT, AIM_CPU, AIM_MIB = 1_000, 10.0, 1024  # for so many jobs on MANY_NODES
_HARD_NODES, _HARD_JOBS = 200, 120
_RUNS = 3
_WITHOUT = """
import sys
from basalt import cli, judging
judging.RULES = {name: rule for name, rule in judging.RULES.items() if rule.check.__module__ != "basalt.rules.verdicts"}
sys.exit(cli.main(["check", *sys.argv[1:]]))
"""


def measured(folder: Path) -> dict[str, Any]:
    """Points of the series, each a fresh process or several: sizes, cost, and how many verdicts there are of each."""
    found: dict[str, Any] = {"nodes": [_point(folder / f"nodes-{nodes}", nodes, JOBS) for nodes in NODES]}
    many = folder / f"nodes-{MANY_NODES}"  # its inventory is there already
    found["jobs"] = [_point(many, MANY_NODES, jobs) for jobs in MANY_JOBS]
    clusters.write(many, MANY_NODES, AIM_AT)
    found["check"] = {
        "with": _cost([sys.executable, "-m", "basalt", "check", many.name, "--quiet"], folder),
        "without": _cost([sys.executable, "-c", _WITHOUT, many.name, "--quiet"], folder),
    }
    found["hard"] = _point(folder / "hard", _HARD_NODES, _HARD_JOBS, clusters.AWKWARD)
    return found


def _point(folder: Path, nodes: int, jobs: int, kinds: Sequence[clusters.Kind] = clusters.EVERYDAY) -> dict[str, Any]:
    clusters.write(folder, nodes, jobs, kinds)
    command = [sys.executable, "-m", "basalt", "fit", folder.name, "--format", "json"]
    cost = _cost(command, folder.parent, output="verdicts.json")
    summary = json.loads((folder.parent / "verdicts.json").read_text(encoding="utf-8"))["summary"]
    print(f"{nodes} nodes, {jobs} jobs: {cost['cpu']:.2f} s", file=sys.stderr, flush=True)
    return {"nodes": nodes, "jobs": jobs, **cost, "verdicts": summary}


def _cost(command: list[str], folder: Path, output: str = os.devnull) -> dict[str, float]:
    cost = processes.median([processes.run(command, folder, output=output) for _ in range(_RUNS)])
    return {"cpu": round(cost.cpu, 3), "wall": round(cost.wall, 3), "mib": round(cost.memory)}


def text(figures: Figures) -> str:
    check, hard, aim = figures["check"], figures["hard"], _aimed(figures)
    added = check["with"]["cpu"] - check["without"]["cpu"]
    return f"""
What `basalt fit` takes to read an inventory and training jobs of five shapes, to judge them by every rule, and to give
each job its verdict. Nodes are as kubectl prints them, 10 kB each, in racks of 8, leaves of 32 and spines of 256; jobs
take 27 GPUs in the mean, three of five with a hard topology. The aim is {AIM_AT:,} jobs on {MANY_NODES:,} nodes in
under {AIM_CPU:.0f} s of CPU and 1 GiB: here {aim["cpu"]:.1f} s and {aim["mib"]} MiB.

### Against nodes

{{nodes}}

{_table(figures["nodes"])}

{_growth(figures["nodes"], "nodes")}

### Against jobs

{{jobs}}

{_table(figures["jobs"])}

{_growth(figures["jobs"], "jobs")}

### Where packing is hard

{hard["jobs"]} jobs of pods with 2, 3, 5 and 6 GPUs, which ask for {
        clusters.gpus(clusters.AWKWARD, hard["jobs"]):,} GPUs of
{hard["nodes"]} nodes with 8 each. What a quick search does not place goes to the solver, whose time is bounded for the
whole run, in its own deterministic units: where that is used up, verdicts are `unknown`.

{_table([hard], with_verdicts=True)}

### What verdicts add to `basalt check`

Three rules stand on the same verdicts. {AIM_AT:,} jobs on {MANY_NODES:,} nodes:

{
        table(
            ("", "CPU s", "peak MiB"),
            [
                (name, f"{each['cpu']:.2f}", each["mib"])
                for name, each in (
                    ("check", check["with"]),
                    ("check without these rules", check["without"]),
                    ("fit", aim),
                )
            ],
        )
    }

They are {added / check["with"]["cpu"]:.0%} of what the check costs.
"""


def _table(points: Sequence[Mapping[str, Any]], *, with_verdicts: bool = False) -> str:
    heads = ["nodes", "jobs", "CPU s", "wall s", "peak MiB", "ms a job", "us a node"]
    rows = [[f"{each['nodes']:,}", f"{each['jobs']:,}", f"{each['cpu']:.2f}", f"{each['wall']:.2f}", each["mib"],
             f"{each['cpu'] / each['jobs'] * 1e3:.1f}", f"{each['cpu'] / each['nodes'] * 1e6:.0f}"]
            for each in points]  # fmt: skip
    if with_verdicts:
        states = list(points[0]["verdicts"])
        heads = [*heads[:-2], *states]  # instead of the ratios
        rows = [[*row[:-2], *(each["verdicts"][state] for state in states)]
                for row, each in zip(rows, points, strict=True)]  # fmt: skip
    return table(heads, rows)


def _growth(points: Sequence[Mapping[str, Any]], what: str) -> str:
    first, before, last = points[0], points[-2], points[-1]
    return (
        f"{last[what] / first[what]:g} times as many {what} cost {last['cpu'] / first['cpu']:.1f} times as much; "
        f"the last step, {last[what] / before[what]:g} times as many, {last['cpu'] / before['cpu']:.1f} times."
    )


def _aimed(figures: Figures) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(each for each in figures["jobs"] if each["jobs"] == AIM_AT)
    return found


def missed(figures: Figures) -> list[str]:
    aimed = _aimed(figures)
    found = []
    if aimed["cpu"] > AIM_CPU:
        found.append(f"{AIM_AT} jobs on {MANY_NODES} nodes take {aimed['cpu']:.1f} s of CPU, not {AIM_CPU:.0f}")
    if aimed["mib"] > AIM_MIB:
        found.append(f"{AIM_AT} jobs on {MANY_NODES} nodes take {aimed['mib']} MiB, not {AIM_MIB}")
    for what in ("nodes", "jobs"):
        before, last = figures[what][-2:]
        if last["cpu"] / before["cpu"] > last[what] / before[what]:
            found.append(f"a {what[:-1]} costs more among {last[what]} than among {before[what]}")
    return found


def plots(figures: Figures) -> dict[str, Plot]:
    return {
        what: Plot(
            f"basalt fit: CPU against {what}, {fixed}",
            what,
            "CPU seconds",
            [(each[what], each["cpu"]) for each in figures[what]],
        )
        for what, fixed in (("nodes", f"{JOBS} jobs"), ("jobs", f"{MANY_NODES:,} nodes"))
    }


SECTION = Section("verdicts", "Verdicts", measured, text, plots, missed)
