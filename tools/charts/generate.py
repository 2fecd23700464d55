"""Writes schemas/charts/ from the charts that lie in the Go modules pinned in tools/go_modules.json: `make charts`.

Which values a chart knows is read from its values.yaml and from what its templates read. Needs Go, and the network for
a module that is not in Go's cache. The same sources give the same bytes.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))  # so that the checkout's own tools are used

from tools import go_modules  # noqa: E402  # the path comes first
from tools.go_modules import Refusal, downloaded  # noqa: E402

Path_ = tuple[str, ...]


class Chart(NamedTuple):
    """Where a chart lies. has_module_version is set where its release gives the chart the version of the module, be
    the one in the committed Chart.yaml older."""

    module: str
    folder: str
    repository: str
    has_module_version: bool = False


_PROMETHEUS = "github.com/prometheus-community/helm-charts"
_PROMETHEUS_CHARTS = "https://prometheus-community.github.io/helm-charts"
CHARTS = (
    Chart(
        "volcano.sh/volcano",
        "installer/helm/chart/volcano",
        "https://volcano-sh.github.io/helm-charts",
        has_module_version=True,  # hack/generate-charts.sh: helm package --version ${TAG}
    ),
    Chart(
        "sigs.k8s.io/descheduler",
        "charts/descheduler",
        "https://kubernetes-sigs.github.io/descheduler/",
        has_module_version=True,  # the chart's version is raised after the tag
    ),
    Chart(
        "sigs.k8s.io/metrics-server",
        "charts/metrics-server",
        "https://kubernetes-sigs.github.io/metrics-server/",
    ),
    Chart(
        "sigs.k8s.io/node-feature-discovery",
        "deployment/helm/node-feature-discovery",
        "oci://registry.k8s.io/nfd/charts",
        has_module_version=True,  # Chart.yaml says 0.2.1 in every commit
    ),
    Chart(
        "github.com/NVIDIA/k8s-device-plugin",
        "deployments/helm/nvidia-device-plugin",
        "https://nvidia.github.io/k8s-device-plugin",
    ),
    Chart("github.com/kubeflow/trainer/v2", "charts/kubeflow-trainer", "oci://ghcr.io/kubeflow/charts"),
    Chart("sigs.k8s.io/jobset", "charts/jobset", "oci://registry.k8s.io/jobset/charts"),
    *(
        Chart(_PROMETHEUS, f"charts/{name}", _PROMETHEUS_CHARTS)
        for name in ("kube-prometheus-stack", "prometheus", "prometheus-adapter")
    ),
)

# .Values.a.b, $.Values.a.b and index .Values "a" "b".
_READ = re.compile(r"\.Values((?:\.\w+)+)")
_INDEXED = re.compile(r"index\s+\(?\s*\$?\.Values((?:\s+\"[^\"]+\")+)")
_WHOLE = re.compile(r"\.Values\b(?!\.\w)")
_WORDS = re.compile(r'"([^"]+)"')
_ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_GROUP = re.compile(r"^  group: ([a-z0-9.-]+)$", re.MULTILINE)
_KIND = re.compile(r"^  names:\n(?:    .*\n)*?    kind: (\w+)$", re.MULTILINE)
_NAMESPACE = re.compile(r"^kind: Namespace$", re.MULTILINE)
# Helm hands these to every chart, whatever its values.yaml says.
_ALWAYS = ("global", "tags")


def generated(sources: Iterable[dict[str, str]]) -> Iterator[tuple[Path, str]]:
    """The path and the text of every file: one chart at one version each."""
    for source in sources:
        for chart in (each for each in CHARTS if each.module == source["module"]):
            content = described(downloaded(source) / chart.folder, chart, source)
            path = ROOT / "schemas" / "charts" / f"{content['chart']}-{content['version']}.json"
            yield path, json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def described(folder: Path, chart: Chart, source: dict[str, str]) -> dict[str, Any]:
    own = yaml.safe_load((folder / "Chart.yaml").read_text())
    values = yaml.safe_load((folder / "values.yaml").read_text()) or {}
    version = source["version"].removeprefix("v") if chart.has_module_version else str(own["version"])
    return {
        "chart": own["name"],
        "version": version,
        "appVersion": str(own.get("appVersion", version)) if not chart.has_module_version else source["version"],
        "kubeVersion": own.get("kubeVersion"),
        "repository": chart.repository,
        "crds": sorted(custom_kinds(folder)),
        "namespaces": creates_namespaces(folder),
        "values": tree(folder, own, values),
        "source": {**source, "folder": chart.folder},
    }


def tree(folder: Path, own: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the chart knows: a map of names, or null where anything may stand."""
    reads = set(_reads(folder))
    if () in reads:
        raise Refusal(f"{folder}: a template reads all values at once")
    subcharts = [each.get("alias") or each["name"] for each in own.get("dependencies") or []]
    known = _node(values, (), reads)
    return dict(sorted({**(known or {}), **dict.fromkeys((*subcharts, *_ALWAYS))}.items()))


def _node(value: Any, at: Path_, reads: set[Path_]) -> dict[str, Any] | None:
    """What may stand at a place: anything where it is no map, an empty one, or one that a template takes whole."""
    if not isinstance(value, dict) or not value or at in reads:
        return None
    read = {path[len(at)] for path in reads if len(path) > len(at) and path[: len(at)] == at}
    names = sorted({*map(str, value), *read})
    return {name: _node(value.get(name), (*at, name), reads) for name in names}


def _reads(folder: Path) -> Iterator[Path_]:
    """The paths that the chart's own templates read."""
    for path in sorted(each for each in (folder / "templates").rglob("*") if each.is_file()):
        for action in _ACTION.findall(path.read_text(encoding="utf-8")):
            yield from (tuple(found[1:].split(".")) for found in _READ.findall(action))
            indexed = [tuple(_WORDS.findall(found)) for found in _INDEXED.findall(action)]
            yield from indexed
            if len(_WHOLE.findall(action)) > len(indexed):
                yield ()


def custom_kinds(folder: Path) -> set[str]:
    """The kinds (group/Kind) of the CustomResourceDefinitions that lie in the chart and its subcharts."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.yaml")))
    documents = [each for text in texts if "kind: CustomResourceDefinition" in text for each in text.split("\n---")]
    return {
        f"{group[1]}/{kind[1]}" for each in documents if (group := _GROUP.search(each)) and (kind := _KIND.search(each))
    }


def creates_namespaces(folder: Path) -> bool:
    return any(_NAMESPACE.search(path.read_text(encoding="utf-8")) for path in folder.rglob("templates/**/*.yaml"))


if __name__ == "__main__":
    sys.exit(go_modules.write(generated))
