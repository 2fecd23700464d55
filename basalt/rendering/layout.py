"""Where each object goes in the output, and in which order everything is applied. Pure."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import quote

from basalt import __version__
from basalt.loading.files import STAMP, SourceFile
from basalt.objects import RELEASE, KubeObject, mapping
from basalt.rendering import yaml_writer

KUSTOMIZATION = "kustomization.yaml"
ARGO_CD_FOLDER = 3_000_000  # bytes; Argo CD refuses an Application of more than 10 MB of manifests

# Folders in apply order, each with the kinds (by API group) that belong there, in apply order. Reason for the order:
# what is named comes before what names it, and the webhooks refuse a queue before its parent.
_PARTS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("00-crds", (("apiextensions.k8s.io", "CustomResourceDefinition"),)),
    ("10-namespaces", (("", "Namespace"),)),
    (
        "15-charts",
        (
            ("source.toolkit.fluxcd.io", "HelmRepository"),
            ("helm.toolkit.fluxcd.io", "HelmRelease"),
            ("argoproj.io", "Application"),
        ),
    ),
    ("20-scheduler", ()),
    ("22-gpu", ()),
    ("24-network", ()),
    ("26-identity", ()),
    ("28-metrics", ()),
    ("29-descheduler", ()),
    ("30-priorities", (("scheduling.k8s.io", "PriorityClass"),)),
    ("40-queues", (("scheduling.volcano.sh", "Queue"),)),
    ("50-topology", (("topology.volcano.sh", "HyperNode"),)),
    (
        "60-tenancy",
        (
            ("", "ResourceQuota"),
            ("", "LimitRange"),
            ("networking.k8s.io", "NetworkPolicy"),
            ("", "ServiceAccount"),
            ("rbac.authorization.k8s.io", "ClusterRole"),
            ("rbac.authorization.k8s.io", "Role"),
            ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
            ("rbac.authorization.k8s.io", "RoleBinding"),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ),
    ),
    ("70-manifests", ()),  # whatever has no place of its own
    (
        "90-jobs",
        (
            ("scheduling.volcano.sh", "PodGroup"),
            ("flow.volcano.sh", "JobTemplate"),
            ("batch.volcano.sh", "Job"),
            ("batch.volcano.sh", "CronJob"),
            ("flow.volcano.sh", "JobFlow"),
            ("batch", "Job"),
            ("batch", "CronJob"),
            ("", "Pod"),
        ),
    ),
)
_OTHERS = "70-manifests"
_OF_KIND = {kind: (part, rank) for part, kinds in _PARTS for rank, kind in enumerate(kinds)}
_OF_MODULE = {part.partition("-")[2]: part for part, kinds in _PARTS if not kinds and part != _OTHERS}
_UNRANKED = 100
_FILE_SAFE = " @+=,"
_LONGEST_STEM = 240  # of the 255 bytes that file systems allow a name


class Output(NamedTuple):
    """One file of the output: its path in the folder, with slashes, and its bytes."""

    path: str
    content: bytes


def is_withheld(declared: KubeObject) -> bool:
    """Whether the object is a Secret with values: they reach no output, even where the finding about it is waived."""
    ref = declared.ref
    return (ref.group, ref.kind) == ("", "Secret") and any(declared.value.get(key) for key in ("data", "stringData"))


def is_release(declared: KubeObject) -> bool:
    """Whether it is a chart for Pulumi to install, which no API server takes: it stands in the stamp alone."""
    return (declared.ref.api_version, declared.ref.kind) == RELEASE


def is_file(declared: KubeObject) -> bool:
    """Whether it is the configuration of a program, such as the API server's: no cluster takes what has no name."""
    metadata = mapping(declared.value.get("metadata"))
    return not declared.name and not metadata.get("generateName")


def in_apply_order(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """The objects in the order in which they can be applied, Secrets with values, charts and programs'
    configurations left out. The order is total, so that no order of the input shows."""
    everything = [each for each in objects if not (is_withheld(each) or is_release(each) or is_file(each))]
    depths = _queue_depths(everything)

    def key(declared: KubeObject) -> tuple[Any, ...]:
        ref = declared.ref
        return (_place(declared)[0], *_wave(declared, depths), ref.group, ref.kind, ref.namespace or "", ref.name)

    return sorted(everything, key=key)


class Phase(NamedTuple):
    """One part of what is applied: its name, and its objects in waves; those of a wave need none of each other."""

    part: str
    waves: tuple[tuple[KubeObject, ...], ...]

    @property
    def objects(self) -> list[KubeObject]:
        return [each for wave in self.waves for each in wave]


def phases(objects: Iterable[KubeObject]) -> list[Phase]:
    """What can be applied, in the order in which it can; of the jobs those of the highest priority first, so that they
    take what there is too little of."""
    ordered = in_apply_order(objects)
    depths, priorities = _queue_depths(ordered), _priorities(ordered)

    def wave(declared: KubeObject) -> tuple[int, int]:
        rank, depth = _wave(declared, depths)
        return rank, depth - priorities.get(declared.spec.get("priorityClassName"), priorities[None])

    found = []
    for part, inside in groupby(ordered, key=lambda each: _place(each)[0]):
        waves = groupby(sorted(inside, key=wave), key=wave)
        found.append(Phase(part, tuple(tuple(each) for _, each in waves)))
    return found


def _priorities(objects: Iterable[KubeObject]) -> dict[str | None, int]:
    """The values of the PriorityClasses by name; under None that of what names none."""
    found: dict[str | None, int] = {None: 0}
    for each in objects:
        if each.ref.kind == "PriorityClass" and isinstance(value := each.value.get("value"), int):
            found[each.name] = value
            if each.value.get("globalDefault") is True:
                found[None] = value
    return found


def _wave(declared: KubeObject, depths: Mapping[str, int]) -> tuple[int, int]:
    """Its kind's rank in its part, and how deep it is in a tree of its kind: parents come first."""
    depth = depths.get(declared.name, 0) if declared.ref.kind == "Queue" else _tier(declared)
    return _place(declared)[1], depth


def _place(declared: KubeObject) -> tuple[str, int]:
    found = _OF_KIND.get((declared.ref.group, declared.ref.kind))
    return found or (_OF_MODULE.get(declared.module or "", _OTHERS), _UNRANKED)


def part_of(declared: KubeObject) -> str:
    """The folder that the object stands in: 40-queues."""
    return _place(declared)[0]


def _tier(declared: KubeObject) -> int:
    tier = declared.spec.get("tier") if declared.ref.kind == "HyperNode" else 0
    return tier if isinstance(tier, int) else 0


def _queue_depths(objects: Sequence[KubeObject]) -> dict[str, int]:
    """How far each queue is below root: parents are applied first."""
    parents = {each.name: str(each.spec.get("parent") or "root") for each in objects if each.ref.kind == "Queue"}
    depths: dict[str, int] = {}
    for start in parents:
        trail: dict[str, int] = {}
        above = start
        while above in parents and above not in depths and above not in trail:
            trail[above] = len(trail)
            above = parents[above]
        steps = list(trail)
        if above in trail:  # a circle, all of whose members are as deep
            circle = steps[trail[above] :]
            depths.update(dict.fromkeys(circle, len(circle)))
            steps = steps[: trail[above]]
        for name in reversed(steps):
            depths[name] = depths.get(parents[name], 0) + 1
    return depths


def path_of(declared: KubeObject) -> str:
    """The object's file: <NN>-<part>/[<namespace>/]<kind>[.<group>]-<name>.yaml, no two objects the same."""
    ref = declared.ref
    kind = ref.kind.lower() + (f".{ref.group}" if ref.group else "")
    folder = _place(declared)[0] + (f"/{ref.namespace}" if ref.namespace else "")
    stem = f"{kind}-{quote(ref.name, safe=_FILE_SAFE)}"  # RBAC names may hold what file systems refuse
    if len(stem) > _LONGEST_STEM:
        stem = f"{stem[: _LONGEST_STEM - 13]}-{_short(stem)}"
    return f"{folder}/{stem}.yaml"


def _told_apart(paths: Sequence[str], objects: Sequence[KubeObject]) -> list[str]:
    """The paths; those that differ in case only, or (of kinds that do) not at all, end in a digest of their object's
    name: macOS and Windows would take them for one file."""
    times = Counter(path.casefold() for path in paths)

    def one(path: str, declared: KubeObject) -> str:
        if times[path.casefold()] == 1:
            return path
        folder, _, name = path.removesuffix(".yaml").rpartition("/")
        return f"{folder}/{name[: _LONGEST_STEM - 13]}-{_short(f'{declared.ref.kind}/{declared.ref.name}')}.yaml"

    return list(map(one, paths, objects))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def render(
    objects: Sequence[KubeObject],
    inputs: Iterable[SourceFile],
    name: str,
    root: str,
    *,
    largest: int | None = None,
    schemas: Mapping[str, str] | None = None,
) -> list[Output]:
    """Every file of the output folder; the stamp, which tells the others' digests and those of the schemas, is the
    last. Parts of more bytes than largest are split into numbered folders."""
    ordered = in_apply_order(objects)
    paths = _told_apart([path_of(each) for each in ordered], ordered)
    files = [Output(path, yaml_writer.document(each.value).encode()) for path, each in zip(paths, ordered, strict=True)]
    files = files if largest is None else _split(files, largest)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [file.path for file in files],
    }
    files.append(Output(KUSTOMIZATION, yaml_writer.document(kustomization).encode()))
    stamp: dict[str, Any] = {
        "basalt": __version__,
        "environment": name,
        "inputs": {_relative(file, root): file.digest for file in sorted(inputs, key=lambda each: each.path)},
        "schemas": dict(schemas or {}),
        "outputs": {file.path: digest(file.content) for file in files},
        "counts": dict(sorted(counts(ordered).items())),
    }
    if charts := sorted((each for each in objects if is_release(each)), key=lambda each: each.ref):
        stamp["charts"] = [{**mapping(each.value.get("metadata")), **each.spec} for each in charts]
    return [*files, Output(STAMP, (json.dumps(stamp, indent=2, ensure_ascii=True) + "\n").encode())]


def _split(files: Sequence[Output], largest: int) -> list[Output]:
    """The files, those of a part that is too large in folders <part>-01, <part>-02, ... in apply order."""
    found: list[Output] = []
    for part, grouped in groupby(files, key=lambda file: file.path.partition("/")[0]):
        inside, volume, size = list(grouped), 1, 0
        is_split = sum(len(file.content) for file in inside) > largest
        for file in inside:
            if size and size + len(file.content) > largest:
                volume, size = volume + 1, 0
            size += len(file.content)
            folder = f"{part}-{volume:02}" if is_split else part
            found.append(Output(f"{folder}/{file.path.partition('/')[2]}", file.content))
    return found


def stream(objects: Iterable[KubeObject]) -> str:
    """All objects as one YAML stream, in apply order."""
    return "".join(f"---\n{yaml_writer.document(each.value)}" for each in in_apply_order(objects))


def counts(objects: Iterable[KubeObject]) -> dict[str, int]:
    """How many objects there are of each kind."""
    found: dict[str, int] = {}
    for each in objects:
        found[each.ref.kind] = found.get(each.ref.kind, 0) + 1
    return found


def digest(content: Any) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _relative(file: SourceFile, root: str) -> str:
    path = str(file.path.resolve())
    return path.removeprefix(f"{root}/")


def outputs_of(stamp: Mapping[str, Any]) -> set[str]:
    """The files that a stamp says belong to its folder, itself included."""
    return {*mapping(stamp.get("outputs")), STAMP}
