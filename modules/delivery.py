"""Third-party parts as releases of upstream charts, in the form that the environment's engine installs: Pulumi as
helm.v3 releases, Argo CD as Applications, Flux as HelmReleases. Modules declare a release once, by `release`."""

from collections.abc import Iterator, Mapping
from typing import Any

from basalt.objects import MANAGED_BY, RELEASE, Manifest
from basalt.pointers import Pointer

_VALUES: Pointer = ("spec", "values")
_WAVE = "argocd.argoproj.io/sync-wave"
# Parts whose CRDs or webhooks others need come first (order of installation, components of the platform).
_WAVES = {"kube-prometheus-stack": 1, "network-operator": 2, "gpu-operator": 3, "volcano": 3, "dex": 3}
_LATER = 4
_OCI = "oci://"


def is_release(manifest: Manifest) -> bool:
    return (manifest.value.get("apiVersion"), manifest.value.get("kind")) == RELEASE


def wave(chart: str) -> int:
    """When the chart is installed: after those of lower waves, whose CRDs and webhooks it may need."""
    return _WAVES.get(chart.rpartition("/")[2], _LATER)


def delivered(manifest: Manifest, declared: Mapping[str, Any]) -> Iterator[Manifest]:
    """What the engine takes for a release; declared is the Environment's spec.delivery."""
    engine = declared.get("engine", "pulumi")
    if engine == "argocd":
        yield _application(manifest, declared.get("argocd", {}))
    elif engine == "flux":
        yield from _helm_release(manifest, declared.get("flux", {}))
    else:
        yield manifest


def _application(manifest: Manifest, declared: Mapping[str, Any]) -> Manifest:
    name, namespace, spec = _parts(manifest)
    source = {
        "repoURL": spec["repositoryOpts"]["repo"].removeprefix(_OCI),
        "chart": spec["chart"],
        "targetRevision": spec["version"],
        "helm": {"releaseName": name, "valuesObject": spec["values"]},
    }
    value = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": declared.get("namespace", "argocd"),
            "labels": MANAGED_BY,
            "annotations": {**_digest(manifest), _WAVE: str(wave(spec["chart"]))},
        },
        "spec": {
            "project": declared.get("project", "default"),
            "source": source,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                # The CRDs of several charts are too large for the annotation that a client-side apply writes.
                "syncOptions": ["CreateNamespace=true", "ServerSideApply=true"],
            },
        },
    }
    return Manifest(value, _moved(manifest, ("spec", "source", "helm", "valuesObject"), ("spec", "source")))


def _helm_release(manifest: Manifest, declared: Mapping[str, Any]) -> Iterator[Manifest]:
    name, namespace, spec = _parts(manifest)
    flux = declared.get("namespace", "flux-system")
    repository = spec["repositoryOpts"]["repo"]
    is_oci = repository.startswith(_OCI)
    source = {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "HelmRepository",
        "metadata": {"name": name, "namespace": flux, "labels": MANAGED_BY},
        "spec": {"interval": "1h", "url": repository, **({"type": "oci"} if is_oci else {})},
    }
    yield Manifest(source, {(): manifest.origins[()]})
    value = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": flux, "labels": MANAGED_BY, **_annotated(manifest)},
        "spec": {
            "interval": "10m",
            "releaseName": name,
            "targetNamespace": namespace,
            "chart": {
                "spec": {
                    "chart": spec["chart"],
                    "version": spec["version"],
                    "sourceRef": {"kind": "HelmRepository", "name": name, "namespace": flux},
                }
            },
            "install": {"crds": "CreateReplace", "createNamespace": True},
            "upgrade": {"crds": "CreateReplace"},
            "values": spec["values"],
        },
    }
    yield Manifest(value, _moved(manifest, _VALUES, ("spec", "chart", "spec")))


def _parts(manifest: Manifest) -> tuple[str, str, Mapping[str, Any]]:
    metadata = manifest.value["metadata"]
    return metadata["name"], metadata["namespace"], manifest.value["spec"]


def _digest(manifest: Manifest) -> Mapping[str, str]:
    annotations: Mapping[str, str] = manifest.value["metadata"].get("annotations", {})
    return annotations


def _annotated(manifest: Manifest) -> Mapping[str, Any]:
    return {"annotations": _digest(manifest)} if _digest(manifest) else {}


def _moved(manifest: Manifest, values: Pointer, version_in: Pointer) -> dict[Pointer, Pointer]:
    """The origins of a release's values and version, at their pointers in the engine's form."""
    found: dict[Pointer, Pointer] = {}
    for at, origin in manifest.origins.items():
        if at[: len(_VALUES)] == _VALUES:
            found[(*values, *at[len(_VALUES) :])] = origin
        elif at == ("spec", "version"):
            found[(*version_in, "version" if version_in[-1] == "spec" else "targetRevision")] = origin
        elif at == ():
            found[at] = origin
    return found
