"""Which API kinds a declared Kubernetes and Volcano serve, and the schema of each; those of raw CRDs among them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from basalt.api import cel, structural, versions
from basalt.api.schemas import ROOT, Shape
from basalt.api.versions import Version
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer

PRODUCTS = ("kubernetes", "volcano")


class Kind(NamedTuple):
    """One kind that an API server takes. default_on is False for alpha and beta APIs that are off by default."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool
    shape: Shape
    trie: Any  # where quantities stand, as structural.quantity_paths gives it
    cel: Mapping[str, Any]  # where CEL rules stand, as cel.rules gives it
    default_on: bool = True


class _Release:
    """The kinds of one minor of Kubernetes or Volcano."""

    def __init__(self, product: str, version: Version) -> None:
        self.version = version
        self._file: dict[str, Any] = msgspec.json.decode((ROOT / product / f"{version}.json").read_bytes())
        self._kinds: dict[str, Kind] = {}

    def has(self, key: str) -> bool:
        return key in self._file["kinds"]

    def __iter__(self) -> Iterator[str]:
        """The keys of its kinds: apps/v1/Deployment."""
        return iter(self._file["kinds"])

    @cached_property
    def groups(self) -> frozenset[str]:
        return frozenset(key.rpartition("/")[0].rpartition("/")[0] for key in self)

    @property
    def definitions(self) -> Mapping[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = self._file["definitions"]
        return found

    def kind(self, key: str) -> Kind | None:
        if key not in self._file["kinds"]:
            return None
        if key not in self._kinds:
            self._kinds[key] = self._build(key)
        return self._kinds[key]

    def _build(self, key: str) -> Kind:
        entry = self._file["kinds"][key]
        definitions = structural.reachable(self._file["definitions"], entry["definition"])
        schema = {"$ref": f"#/definitions/{entry['definition']}", "definitions": definitions}
        trie = structural.quantity_paths(schema, definitions)
        api_version, _, kind = key.rpartition("/")
        namespaced = entry["scope"] == "Namespaced"
        return Kind(
            api_version,
            kind,
            entry["plural"],
            namespaced,
            Shape(schema),
            trie,
            cel.rules(schema),
            entry.get("default", True),
        )


@cache
def _release(product: str, version: Version) -> _Release:
    return _Release(product, version)


class Catalog:
    """The kinds that one environment's cluster serves."""

    def __init__(self, kubernetes: Version, volcano: Version, *, is_declared: bool = True) -> None:
        self.versions = {"kubernetes": kubernetes, "volcano": volcano}
        self.is_declared = is_declared  # False: the newest versions stand in, and what they lack proves nothing
        self._custom: dict[str, Kind] = {}
        self._definitions: list[Mapping[str, Any]] = []
        self._found: dict[str, Kind | None] = {}

    @property
    def sources(self) -> list[Any]:
        """All that it is made from, as values."""
        return [*self.versions.values(), self.is_declared, self._definitions]

    def schema_files(self) -> list[Path]:
        """What the environment is judged by that is no code: the schemas of its versions and of the documents, and the
        lock of the charts."""
        own = [path for folder in ("documents", "parts") for path in (ROOT / folder).glob("*.json")]
        served = [ROOT / product / f"{version}.json" for product, version in self.versions.items()]
        return sorted([*own, *served, ROOT / "charts.lock.json"])

    def add_definitions(self, objects: Iterable[KubeObject]) -> None:
        """Takes in the kinds of the CustomResourceDefinitions among the objects."""
        for declared in objects:
            self._definitions.append(declared.value)
            self._found.clear()
            for kind in _custom_kinds(declared, _release("kubernetes", self.versions["kubernetes"]).definitions):
                self._custom[f"{kind.api_version}/{kind.kind}"] = kind

    def find(self, api_version: str, kind: str) -> Kind | None:
        """The kind as the declared versions serve it; None where they do not."""
        key = f"{api_version}/{kind}"
        if key not in self._found:
            product = self.product(api_version)
            served = _release(product, self.versions[product]).kind(key) if product else None
            self._found[key] = self._custom.get(key, served)
        return self._found[key]

    def custom_versions(self, group: str, kind: str) -> list[str]:
        """The apiVersions under which declared CustomResourceDefinitions serve a kind of the group."""
        found = (each.api_version for each in self._custom.values() if each.kind == kind)
        return sorted(version for version in found if version.startswith(f"{group}/"))

    @property
    def unreadable_rules(self) -> list[str]:
        """The CEL rules of declared CustomResourceDefinitions that cannot be evaluated here."""
        return sorted({rule for kind in self._custom.values() for rule in cel.unreadable(kind.cel)})

    def product(self, api_version: str) -> str | None:
        """Who serves the group: `kubernetes`, `volcano`, or nobody that there are schemas of."""
        group = api_version.rpartition("/")[0]
        if group.endswith(".volcano.sh"):
            return "volcano" if self._has_group("volcano", group) else None
        own = not group or "." not in group or group.endswith(".k8s.io")
        return "kubernetes" if own and self._has_group("kubernetes", group) else None

    def _has_group(self, product: str, group: str) -> bool:
        """Whether the declared version, or else some other, has the API group: others are read only when asked."""
        return group in _release(product, self.versions[product]).groups or group in _groups(product)

    def serving(self, api_version: str, kind: str) -> tuple[Version, ...]:
        """The versions, of all that there are schemas for, that serve the kind."""
        product = self.product(api_version)
        key = f"{api_version}/{kind}"
        every = versions.known(product) if product else ()
        return tuple(each for each in every if _release(product or "", each).has(key))

    def knowing(self, api_version: str, kind: str, pointer: Pointer) -> tuple[Version, ...]:
        """The versions whose schema of the kind has something at the pointer: those that know a field."""
        product = self.product(api_version)
        found = []
        for version in self.serving(api_version, kind):
            known = _release(product or "", version).kind(f"{api_version}/{kind}")
            parent = known.shape.at(pointer[:-1]) if known else None
            if parent is not None and pointer[-1] in parent.get("properties", {}):
                found.append(version)
        return tuple(found)

    def alternatives(self, kind: str) -> list[str]:
        """The apiVersions under which the declared versions serve a kind of this name."""
        found = [key for product in PRODUCTS for key in _release(product, self.versions[product])]
        return sorted(key.rpartition("/")[0] for key in [*found, *self._custom] if key.rpartition("/")[2] == kind)

    @cached_property
    def kind_names(self) -> frozenset[str]:
        keys = (key for product in PRODUCTS for key in _release(product, self.versions[product]))
        return frozenset(key.rpartition("/")[2] for key in (*keys, *self._custom))


@cache
def _groups(product: str) -> frozenset[str]:
    """The API groups of the oldest and the newest version: groups come and go slowly."""
    every = versions.known(product)
    return _release(product, every[0]).groups | _release(product, every[-1]).groups


def _custom_kinds(definition: KubeObject, core: Mapping[str, dict[str, Any]]) -> Iterator[Kind]:
    """A kind for each served version of a CustomResourceDefinition; one whose schema cannot be compiled (a pattern
    that only Go reads) is left out, and its objects are not judged by it."""
    spec = definition.spec
    names = mapping(spec.get("names"))
    for version in map(mapping, sequence(spec.get("versions"))):
        schema = mapping(version.get("schema")).get("openAPIV3Schema")
        if not version.get("served", True) or not isinstance(schema, Mapping):
            continue
        strict = structural.strict_crd(schema, core)
        if not Shape(strict).is_sound:
            continue
        api_version = f"{spec.get('group')}/{version.get('name')}"
        trie = structural.quantity_paths(strict, strict.get("definitions", {}))
        namespaced = spec.get("scope") != "Cluster"
        kind, plural = str(names.get("kind")), str(names.get("plural"))
        yield Kind(api_version, kind, plural, namespaced, Shape(strict), trie, cel.rules(strict))
