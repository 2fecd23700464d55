"""Nodes by shape: what kinds of machines there are, what each offers, and what keeps pods off them."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from basalt.loading.nodes import Node, Taint
from basalt.proposing.selecting import selector
from basalt.quantities import Amount, Resources, is_extended, parse_map
from basalt.rules.placement import is_accelerator
from basalt.views.gpu_products import PRODUCT

_PRODUCTS = (
    PRODUCT,
    "cloud.google.com/gke-accelerator",
    "amd.com/gpu.product-name",
    "karpenter.k8s.aws/instance-gpu-name",
)
_INSTANCE = "node.kubernetes.io/instance-type"
_DRIVER = "nvidia.com/cuda.driver-version.full"
_OLD_DRIVER = tuple(f"nvidia.com/cuda.driver.{part}" for part in ("major", "minor", "rev"))
_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}(\.[0-9]{1,4})?")
_MODEL = re.compile(r"\b((?:GB|GH|RTX-?|MI|[A-Z])[0-9]{1,4}[A-Z]{0,2})\b")
_CONTROL = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_MOST = 12  # pools for which labels are looked for that tell them apart
_PASSING = re.compile(r"node\.kubernetes\.io/(unschedulable|not-ready|unreachable|.*-pressure|network-unavailable)")


class Pool(NamedTuple):
    """Nodes of one shape. devices: the accelerators and other extended resources that each offers; cpu and memory:
    what the least of them offers; selector: the labels that tell it from the other pools, None where none do."""

    name: str
    nodes: tuple[Node, ...]
    devices: Resources
    cpu: Amount
    memory: Amount
    taints: tuple[Taint, ...]
    product: str
    instance: str
    selector: dict[str, str] | None
    driver: str

    @property
    def accelerators(self) -> Resources:
        return {name: amount for name, amount in self.devices.items() if is_accelerator(name)}

    @property
    def ready(self) -> list[Node]:
        """The nodes on which new pods may land."""
        return [node for node in self.nodes if node.takes_pods]


class _Shape(NamedTuple):
    product: str
    instance: str
    cpu: Amount
    devices: tuple[tuple[str, Amount], ...]
    taints: tuple[Taint, ...]


def workers(nodes: Sequence[Node]) -> list[Node]:
    """The nodes that training runs on: those with accelerators; where there are none, all but the control plane."""
    with_devices = [node for node in nodes if any(map(is_accelerator, devices_of(node)))]
    return with_devices or [node for node in nodes if not _is_control_plane(node)] or list(nodes)


def devices_of(node: Node) -> Resources:
    """The extended resources that it offers any of."""
    return {name: amount for name, amount in parse_map(node.allocatable).items() if is_extended(name) and amount > 0}


def propose(nodes: Iterable[Node]) -> tuple[Pool, ...]:
    """The pools, the one with most accelerators (then nodes) first."""
    shapes: dict[_Shape, list[Node]] = {}
    for node in nodes:
        shapes.setdefault(_shape(node), []).append(node)
    ordered = sorted(
        shapes, key=lambda shape: (-_accelerators(shape) * len(shapes[shape]), -len(shapes[shape]), repr(shape))
    )
    named = _names(ordered)
    found = []
    for number, (shape, name) in enumerate(zip(ordered, named, strict=True)):
        own = shapes[shape]
        labels = None
        if number < _MOST:
            labels = selector(own, [node for other in ordered if other != shape for node in shapes[other]])
        found.append(_pool(shape, name, own, labels))
    return tuple(found)


def lasting(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """The taints that a pool has for good, not those of a node's passing state."""
    return tuple(sorted((taint for taint in taints if not _PASSING.fullmatch(taint.key)), key=_order))


def _order(taint: Taint) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect


def _pool(shape: _Shape, name: str, nodes: Sequence[Node], labels: dict[str, str] | None) -> Pool:
    offered = [parse_map(node.allocatable) for node in nodes]
    return Pool(
        name,
        tuple(sorted(nodes, key=lambda node: node.name)),
        dict(shape.devices),
        min(each.get("cpu", 0) for each in offered),
        min(each.get("memory", 0) for each in offered),
        shape.taints,
        shape.product,
        shape.instance,
        labels,
        _driver(nodes),
    )


def _shape(node: Node) -> _Shape:
    labels = node.labels
    return _Shape(
        next((labels[key] for key in _PRODUCTS if labels.get(key)), ""),
        labels.get(_INSTANCE, ""),
        parse_map(node.allocatable).get("cpu", 0),
        tuple(sorted(devices_of(node).items())),
        lasting(node.spec.taints or ()),
    )


def _accelerators(shape: _Shape) -> Amount:
    return sum(amount for name, amount in shape.devices if is_accelerator(name))


def _is_control_plane(node: Node) -> bool:
    return any(key in node.labels for key in _CONTROL) or any(taint.key in _CONTROL for taint in node.spec.taints or ())


def _names(shapes: Sequence[_Shape]) -> list[str]:
    """A short name for each: the GPU's model, the instance type, else cpu; told apart by a number."""
    wanted = [_slug(_short(shape)) or ("gpu" if _accelerators(shape) else "cpu") for shape in shapes]
    seen: Counter[str] = Counter()
    found: list[str] = []
    for name in wanted:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found if len(set(found)) == len(found) else [f"pool-{number}" for number in range(1, len(found) + 1)]


def _short(shape: _Shape) -> str:
    model = _MODEL.search(shape.product.upper().replace("NVIDIA-", ""))
    return model[1] if model else shape.product or shape.instance


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:32].strip("-")


def _driver(nodes: Iterable[Node]) -> str:
    """The version of the driver that all of them report; empty where they report none, or several."""
    found = {
        node.labels.get(_DRIVER) or ".".join(filter(None, (node.labels.get(key) for key in _OLD_DRIVER)))
        for node in nodes
    }
    version = found.pop() if len(found) == 1 else ""
    return version if _VERSION.fullmatch(version) else ""
