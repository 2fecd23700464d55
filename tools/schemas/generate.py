"""Writes schemas/kubernetes/ and schemas/volcano/ from the Go modules pinned in tools/go_modules.json: `make schemas`.

Decides which kinds and definitions are kept; how a schema becomes strict is basalt/api/structural.py. Needs Go, and the
network for a module that is not in Go's cache. The same sources give the same bytes.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))  # so that the checkout's own structural.py is used, installed or not

from basalt.api.structural import Schema, reachable, strict_crd, strict_definitions  # noqa: E402  # the path comes first
from tools import go_modules  # noqa: E402
from tools.go_modules import Refusal, downloaded  # noqa: E402
from tools.schemas import enums  # noqa: E402

KUBERNETES = "k8s.io/kubernetes"
VOLCANO = "volcano.sh/volcano"
SWAGGER = "api/openapi-spec/swagger.json"
SERVED = "pkg/controlplane/instance.go"
CRDS = ("config/crd/volcano/bases", "config/crd/jobflow/bases")

# What Volcano 1.14 brought and 1.13, which the Go proxy does not have, lacks. Source: volcano.md section 1, field
# history; confirmed by comparing config/crd at the tags v1.13.0 and v1.14.1 of github.com/volcano-sh/volcano, which
# adds the pod fields of Kubernetes 1.34 (the CRDs list every pod field, and the API server prunes the others) and the
# lost default. The bounds and patterns that 1.14 added (#4806, #4813) are left in.
DERIVED_FROM = {"1.13": "1.14"}
NEW_KINDS = ("ColocationConfiguration", "NodeShard")
NEW_FIELDS = ("highestTierName", "tierName", "partitionPolicy", "subGroupPolicy", "dequeueStrategy")
NEW_POD_FIELDS = ("fileKeyRef", "restartPolicyRules", "hostnameOverride", "podCertificate")
LOST_DEFAULTS = {"highestTierAllowed": 1}
DERIVATION = "from this module, without the kinds and fields that 1.14 introduced; its stricter bounds remain"

GROUP_VERSION_KIND = ("group", "version", "kind")
SHARED_LENGTH = 400  # characters of a subschema from which on a second copy becomes a definition of its own


def generated(sources: Iterable[dict[str, str]]) -> Iterator[tuple[Path, str]]:
    """The path and the text of every schema file. Kubernetes comes first: Volcano's metadata is its newest's."""
    metadata: dict[str, Schema] = {}
    own = [each for each in sources if each["module"] in (KUBERNETES, VOLCANO)]
    for source in sorted(own, key=lambda each: (each["module"], _numbers(each["version"]))):
        folder, minor = downloaded(source), ".".join(source["version"].lstrip("v").split(".")[:2])
        if source["module"] == KUBERNETES:
            content = kubernetes(folder)
            metadata = content["definitions"]
            yield _file("kubernetes", minor, source, content)
        else:
            yield from volcano_files(folder, minor, source, metadata)


def volcano_files(
    folder: Path, minor: str, source: dict[str, str], metadata: dict[str, Schema]
) -> Iterator[tuple[Path, str]]:
    crds = list(custom_resources(folder))
    yield _file("volcano", minor, source, volcano(crds, metadata))
    for older in (each for each, newer in DERIVED_FROM.items() if newer == minor):
        known = [each for each in crds if each["spec"]["names"]["kind"] not in NEW_KINDS]
        yield _file("volcano", older, source | {"derived": DERIVATION}, volcano(without_news(known), metadata))


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.lstrip("v").split(".")]


def kubernetes(folder: Path) -> dict[str, Any]:
    """The kinds of one Kubernetes that clients create, and the definitions that they need."""
    swagger = json.loads((folder / SWAGGER).read_text())
    served = Served((folder / SERVED).read_text())
    kinds = dict(collections(swagger["paths"]))
    for kind in kinds.values():
        if not served.has(kind["definition"], kind["plural"]):
            kind["default"] = False
    enums.add(swagger["definitions"], enums.read((folder / enums.CODE).read_text()))
    definitions = strict_definitions(swagger["definitions"])
    return {"kinds": kinds, "definitions": needed(definitions, kinds)}


def collections(paths: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A kind for each path where objects are both listed and created: no subresource, review, Binding or Eviction."""
    for path, verbs in paths.items():
        if not {"get", "post"} <= verbs.keys() or "{name}" in path:
            continue
        group, version, kind = (verbs["post"]["x-kubernetes-group-version-kind"][key] for key in GROUP_VERSION_KIND)
        body = next(each for each in verbs["post"]["parameters"] if each.get("in") == "body")
        yield (
            "/".join(filter(None, (group, version, kind))),
            {
                "definition": body["schema"]["$ref"].rpartition("/")[2],
                "plural": path.rpartition("/")[2],
                "scope": "Namespaced" if "{namespace}" in path else "Cluster",
            },
        )


class Served:
    """Which group-versions and resources a default API server serves, read from its instance.go.

    What is in no EnabledByDefault list is off: all alpha and beta versions are in the DisabledByDefault lists beside
    them. CustomResourceDefinition and APIService have servers of their own and are always on.
    """

    def __init__(self, go: str) -> None:
        self._packages: dict[str, str] = dict(
            re.findall(r'^\s+(\w+) "k8s\.io/(?:api|kubernetes/pkg/apis)/([\w/]+)"$', go, re.MULTILINE)
        )
        lists = re.findall(
            r"\w+EnabledByDefault\w* = \[\]schema\.GroupVersion(?:Resource)?\{\n(.*?)\n\t\}", go, re.DOTALL
        )
        entries = re.findall(
            r'^\s*(\w+)\.SchemeGroupVersion(?:\.WithResource\("(\w+)"\))?,', "\n".join(lists), re.MULTILINE
        )
        self._enabled = {(self._package(alias), resource) for alias, resource in entries}
        if ("core/v1", "") not in self._enabled:
            raise Refusal(f"{SERVED} no longer lists its default versions as this script reads them")

    def _package(self, alias: str) -> str:
        if alias not in self._packages:
            raise Refusal(f"{SERVED} names {alias}, which it imports from nowhere known")
        return self._packages[alias]

    def has(self, definition: str, resource: str) -> bool:
        """Whether the resource, whose definition is named like its Go package, is on by default."""
        if not definition.startswith("io.k8s.api."):
            return True
        group, version, _ = definition.removeprefix("io.k8s.api.").split(".")
        package = f"{group}/{version}"
        return (package, "") in self._enabled or (package, resource) in self._enabled


def custom_resources(folder: Path) -> Iterator[Any]:
    """Volcano's CustomResourceDefinitions."""
    for path in sorted(path for name in CRDS for path in (folder / name).glob("*.yaml")):
        yield yaml.safe_load(path.read_text())


def volcano(crds: Iterable[Any], metadata: dict[str, Schema]) -> dict[str, Any]:
    """The kinds of the CRDs' served versions and their definitions, what several have in common said once."""
    kinds: dict[str, dict[str, Any]] = {}
    definitions: dict[str, Schema] = {}
    for crd in crds:
        spec = crd["spec"]
        for version in (each for each in spec["versions"] if each["served"]):
            kind = spec["names"]["kind"]
            name = ".".join((*reversed(spec["group"].split(".")), version["name"], kind))
            strict = strict_crd(version["schema"]["openAPIV3Schema"], metadata)
            definitions |= strict.pop("definitions") | {name: strict}
            kinds[f"{spec['group']}/{version['name']}/{kind}"] = {
                "definition": name,
                "plural": spec["names"]["plural"],
                "scope": spec["scope"],
            }
    return {"kinds": kinds, "definitions": needed(shared(definitions), kinds)}


def without_news(schema: Any) -> Any:
    """The CRDs without the new fields, and with the defaults of LOST_DEFAULTS."""
    if isinstance(schema, list):
        return [without_news(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: without_news(value) for key, value in schema.items()}
    if isinstance(kept.get("properties"), dict):
        gone = (*NEW_FIELDS, *NEW_POD_FIELDS)
        listed = {name: each for name, each in kept["properties"].items() if name not in gone}
        defaults = {name: listed[name] | {"default": LOST_DEFAULTS[name]} for name in LOST_DEFAULTS if name in listed}
        kept["properties"] = listed | defaults
    return kept


def shared(definitions: dict[str, Schema]) -> dict[str, Schema]:
    """The definitions, with each larger object that occurs twice or more made a definition named after its first place.

    Volcano's CRDs spell the pod template out anew for each kind, and in it the container for each list of containers.
    """
    copies = Counter(text for schema in definitions.values() for text in _objects(schema))
    found: dict[str, Schema] = {}
    places: dict[str, str] = {}

    def replaced(schema: Schema, place: str) -> Schema:
        text = _text(schema)
        if text not in places:
            once = schema | {key: replaced(each, place) for key, each in _inner(schema)}
            if "properties" in schema:
                once["properties"] = {
                    key: replaced(each, f"{place}.{key}") for key, each in schema["properties"].items()
                }
            if copies[text] <= 1 or len(text) < SHARED_LENGTH:
                return once
            places[text], found[place] = place, once
        return {"$ref": f"#/definitions/{places[text]}"}

    shortest_first = sorted(definitions, key=lambda name: (len(name), name))
    return {name: replaced(definitions[name], name) for name in shortest_first} | found


def _objects(schema: Schema) -> Iterator[str]:
    """The text of each object inside the schema that lists its properties, the schema itself left out."""
    for each in (*schema.get("properties", {}).values(), *(inner for _, inner in _inner(schema))):
        if "properties" in each:
            yield _text(each)
        yield from _objects(each)


def _inner(schema: Schema) -> list[tuple[str, Schema]]:
    return [(key, schema[key]) for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]


def needed(definitions: dict[str, Schema], kinds: dict[str, dict[str, Any]]) -> dict[str, Schema]:
    """The definitions that the kinds reach."""
    found: dict[str, Schema] = {}
    for kind in kinds.values():
        if kind["definition"] not in found:
            found |= reachable(definitions, kind["definition"])
    return found


def _file(product: str, minor: str, source: dict[str, str], content: dict[str, Any]) -> tuple[Path, str]:
    return ROOT / "schemas" / product / f"{minor}.json", lines(content | {"source": source})


def lines(content: dict[str, Any]) -> str:
    """JSON with sorted keys and each kind and definition on a line of its own: small, and still read as a diff."""
    blocks = []
    for key, entries in sorted(content.items()):
        rows = ",\n".join(f"{_text(name)}:{_text(entry)}" for name, entry in sorted(entries.items()))
        blocks.append(f"{_text(key)}:{{\n{rows}\n}}")
    return "{" + ",\n".join(blocks) + "}\n"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(go_modules.write(generated))
