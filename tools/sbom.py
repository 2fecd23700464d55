"""Writes dist/basalt.cdx.json: what Basalt is made of, as CycloneDX 1.6 has it, from the lock files alone. The same
lock files give the same bytes: there is no date in it, and its number follows from what it says.

    python tools/sbom.py [FILE]
"""

import json
import sys
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from basalt import __version__  # noqa: E402
from tools import locked  # noqa: E402
from tools.locked import Package  # noqa: E402

# How CycloneDX calls it: always there; there where Pulumi is; of the tests alone.
_SCOPES = dict(zip(locked.FILES, ("required", "optional", "excluded"), strict=True))
_ITSELF = f"pkg:pypi/basalt-compiler@{__version__}"


def bill(packages: list[Package]) -> dict[str, Any]:
    """The bill of materials of the packages."""
    tool = {"type": "application", "name": "tools/sbom.py", "version": __version__}
    said = {
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": _ITSELF,
                "name": "basalt-compiler",
                "version": __version__,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "purl": _ITSELF,
            },
            "tools": {"components": [tool]},
        },
        "components": [_component(each) for each in packages],
        "dependencies": [
            {"ref": _ITSELF, "dependsOn": [_purl(each) for each in packages if _SCOPES[each.file] != "excluded"]},
            *({"ref": _purl(each)} for each in packages),
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(said, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{number}", "version": 1}
    return {"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", **head, **said}


def _component(package: Package) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": each} for each in package.hashes]
    files = {"type": "distribution", "url": _purl(package), "hashes": hashes}
    return {
        "type": "library",
        "bom-ref": _purl(package),
        "name": package.name,
        "version": package.version,
        "scope": _SCOPES[package.file],
        "purl": _purl(package),
        "externalReferences": [files],
    }


def _purl(package: Package) -> str:
    return f"pkg:pypi/{package.name.lower().replace('_', '-')}@{package.version}"


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "basalt.cdx.json"
    packages = list(locked.packages())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bill(packages), indent=2) + "\n", encoding="utf-8")
    print(f"{path}: {len(packages)} packages")


if __name__ == "__main__":
    main()
