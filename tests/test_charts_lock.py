"""The lock of charts: exact versions, and digests as the repositories' indexes give them."""

import json
import re

import pytest

from basalt.api import charts
from tools.charts import lock
from tools.charts.lock import Refusal

INDEX = b"""\
apiVersion: v1
entries:
  dex:
    - {version: 0.24.0, digest: aa11, urls: [dex-0.24.0.tgz]}
    - {version: 0.23.0, urls: [dex-0.23.0.tgz]}
"""
DEX = {"version": "0.24.0", "repository": "https://charts.example.com/"}


def test_digest_is_that_of_the_repositorys_index() -> None:
    asked: list[str] = []

    def read(url: str) -> bytes:
        asked.append(url)
        return INDEX

    oci = {"version": "1.0.0", "repository": "oci://registry.example.com/charts"}
    found = lock.locked({"dex": DEX, "other": oci}, read)

    assert found == {"dex": {**DEX, "digest": "sha256:aa11"}, "other": oci}
    assert asked == ["https://charts.example.com/index.yaml"]


@pytest.mark.parametrize(
    ("entry", "index"),
    [
        pytest.param({**DEX, "version": "0.25.0"}, INDEX, id="no such version"),
        pytest.param({**DEX, "version": "0.23.0"}, INDEX, id="no digest"),
        pytest.param(DEX, b"entries: {}", id="no such chart"),
        pytest.param(DEX, b"<html>", id="no index"),
        pytest.param(DEX, b"a: [", id="no YAML"),
    ],
)
def test_what_the_index_does_not_have_is_refused(entry: dict[str, str], index: bytes) -> None:
    with pytest.raises(Refusal, match=r"index\.yaml"):
        lock.locked({"dex": entry}, lambda _: index)


def test_digests_of_the_lock_are_whole() -> None:
    written = json.loads(lock.LOCK.read_text(encoding="utf-8"))
    found = {chart: entry["digest"] for chart, entry in written.items() if "digest" in entry}

    assert {chart for chart, digest in found.items() if not re.fullmatch("sha256:[0-9a-f]{64}", digest)} == set()
    assert written.keys() - found.keys() == {"network-operator"}


def test_lock_is_written_as_it_is_read() -> None:
    written = lock.LOCK.read_text(encoding="utf-8")

    assert lock.text(json.loads(written)) == written


def test_another_version_has_no_digest_of_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "_lock", lambda: {"dex": {**DEX, "digest": "sha256:aa11"}})
    charts.locked.cache_clear()

    assert charts.locked("dex").digest == "sha256:aa11"
    assert charts.locked("dex", "0.23.0").digest is None
    charts.locked.cache_clear()
