"""What Basalt is made of is listed, and no audit passes that nobody made."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tools import audit, locked, sbom

VULNERABLE = [{"name": "pyyaml", "version": "5.3", "vulns": [{"id": "PYSEC-2021-142"}]}]
CLEAN = [{"name": each.name, "version": each.version, "vulns": []} for each in locked.packages()]


def test_every_locked_package_is_in_the_bill_with_its_hashes() -> None:
    packages = list(locked.packages())
    found = sbom.bill(packages)

    text = "".join((locked.ROOT / name).read_text() for name in locked.FILES)
    pins = {word for word in text.split() if "==" in word}
    assert {each["bom-ref"].removeprefix("pkg:pypi/").replace("@", "==") for each in found["components"]} == pins
    assert len(found["components"]) == len(packages) == len(pins)
    assert all(each["externalReferences"][0]["hashes"] for each in found["components"])
    yaml = next(each for each in found["components"] if each["name"] == "pyyaml")
    assert (yaml["scope"], yaml["purl"]) == ("required", f"pkg:pypi/pyyaml@{yaml['version']}")
    assert {each["scope"] for each in found["components"]} == {"required", "optional", "excluded"}


def test_the_bill_is_the_same_each_time_and_its_number_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        monkeypatch.setattr(sys, "argv", ["sbom.py", str(tmp_path / name)])
        sbom.main()
    packages = list(locked.packages())

    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert json.loads((tmp_path / "one").read_text()) == sbom.bill(packages)
    assert sbom.bill(packages)["serialNumber"] != sbom.bill(packages[1:])["serialNumber"]


def test_a_package_without_a_hash_is_refused(tmp_path: Path) -> None:
    for name in locked.FILES:
        (tmp_path / name).write_text("pyyaml==6.0\n")

    with pytest.raises(ValueError, match=r"pyyaml has no hash; run `make lock`"):
        list(locked.packages(tmp_path))


def answering(known: Any, every: Any) -> audit.Ask:
    def ask(arguments: Sequence[str]) -> Any:
        return known if "--no-deps" in arguments else every

    return ask


@pytest.mark.parametrize(
    ("known", "every", "code", "told"),
    [
        (VULNERABLE, CLEAN, 0, f"{len(CLEAN)} packages audited, 0 vulnerable"),
        (VULNERABLE, [*CLEAN[1:], {**CLEAN[0], "vulns": [{"id": "X-1"}]}], 1, ": X-1"),
        (VULNERABLE, CLEAN[1:], 2, f"NOT AUDITED: nothing was said of {CLEAN[0]['name']}"),
        (VULNERABLE, [*CLEAN[1:], {"name": "a", "skip_reason": "-"}], 2, "NOT AUDITED: the service does not know a"),
        ([{"name": "pyyaml", "skip_reason": "not found"}], CLEAN, 2, "NOT AUDITED: the service knows of no vulnerab"),
        ([{"name": "pyyaml", "version": "5.3", "vulns": []}], CLEAN, 2, "NOT AUDITED: the service knows of no vulner"),
        ("pip-audit: no route", CLEAN, 2, "NOT AUDITED: pip-audit: no route"),
        (VULNERABLE, "pip-audit: timed out", 2, "NOT AUDITED: pip-audit: timed out"),
    ],
)
def test_an_audit_passes_only_where_somebody_told(
    known: Any, every: Any, code: int, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["audit.py"])
    assert audit.main(answering(known, every)) == code
    assert told in "".join(capsys.readouterr())
    monkeypatch.setattr(sys, "argv", ["audit.py", "--may-skip"])
    assert audit.main(answering(known, every)) == (0 if code == 2 else code)
    assert ("SKIPPED, NOT AUDITED" in capsys.readouterr().err) == (code == 2)
