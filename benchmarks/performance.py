"""Measures the sections of docs/performance.md, all or those that are named, and writes the page and its plots.

Exit code 1 where an aim is missed.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks import end_to_end, page, verdicts
from benchmarks.peers import judging, rendering

SECTIONS = (end_to_end.SECTION, rendering.SECTION, judging.SECTION, verdicts.SECTION)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    known = {section.name: section for section in SECTIONS}
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--no-measuring", action="store_true", help="write the page from the figures that are kept")
    options = parser.parse_args()
    if unknown := set(options.sections) - known.keys():
        parser.error(f"no section {min(unknown)}; there are {', '.join(known)}")
    missed: list[str] = []
    for name in () if options.no_measuring else options.sections or known:
        with tempfile.TemporaryDirectory() as folder:
            page.keep(known[name], figures := known[name].measured(Path(folder)))
        missed.extend(f"{name}: {each}" for each in known[name].missed(figures))
    for path, text in page.files(SECTIONS).items():
        (page.DOCS / path).write_text(text, encoding="utf-8")
    for each in missed:
        print(each, file=sys.stderr)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
