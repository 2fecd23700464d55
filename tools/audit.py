"""Asks for known vulnerabilities of every locked package, by pip-audit.

    python tools/audit.py [--may-skip]

Ends with 1 where there is one, with 2 where nobody can tell: pip-audit ends well, too, where the service knows none of
the packages, so it is first asked about one that is known to be vulnerable. With --may-skip that is said, and no fault.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools import locked  # noqa: E402

_KNOWN = ("pyyaml", "5.3")  # PYSEC-2021-142: it runs what a document says
_COMMAND = ("--disable-pip", "--progress-spinner", "off", "--format", "json")

Ask = Callable[[Sequence[str]], list[dict[str, Any]] | str]


class Vulnerable(NamedTuple):
    """A package with a known vulnerability."""

    name: str
    version: str
    ids: tuple[str, ...]


def audit(ask: Ask) -> list[Vulnerable] | str:
    """The vulnerable packages of the lock files; why nobody knows, where nobody does."""
    with tempfile.TemporaryDirectory() as room:
        path = Path(room, "known.txt")
        path.write_text("{}=={}\n".format(*_KNOWN), encoding="utf-8")
        known = ask(["--no-deps", "--requirement", str(path)])
    if isinstance(known, str):
        return known
    if not any(each.get("vulns") for each in known):
        return f"the service knows of no vulnerability of {' '.join(_KNOWN)}, which has some: it does not tell"
    answers = ask(
        ["--require-hashes", *(word for each in locked.FILES for word in ("--requirement", str(ROOT / each)))]
    )
    if isinstance(answers, str):
        return answers
    if untold := [str(each["name"]) for each in answers if "skip_reason" in each]:
        return f"the service does not know {', '.join(untold)}"
    told = {str(each["name"]) for each in answers}
    if missing := sorted({_plain(each.name) for each in locked.packages()} - {_plain(each) for each in told}):
        return f"nothing was said of {', '.join(missing)}"
    found = [(each, tuple(str(one["id"]) for one in each["vulns"])) for each in answers]
    return [Vulnerable(str(each["name"]), str(each["version"]), ids) for each, ids in found if ids]


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _asked(arguments: Sequence[str]) -> list[dict[str, Any]] | str:
    """What pip-audit says of each package, or why it says nothing."""
    command = [sys.executable, "-m", "pip_audit", *_COMMAND, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        lines = done.stderr.strip().splitlines() or [f"pip-audit ended with {done.returncode}"]
        return f"pip-audit: {lines[-1][:300]}"
    return found


def main(ask: Ask = _asked) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--may-skip", action="store_true")
    options = parser.parse_args()
    found = audit(ask)
    if isinstance(found, str):
        print(f"{'SKIPPED, ' if options.may_skip else ''}NOT AUDITED: {found}", file=sys.stderr)
        return 0 if options.may_skip else 2
    for each in found:
        print(f"{each.name} {each.version}: {', '.join(each.ids)}")
    print(f"{len(list(locked.packages()))} packages audited, {len(found)} vulnerable")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
