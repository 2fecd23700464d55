"""Every target of tools/fuzzing/targets.py for some seconds each: make fuzz-coverage SECONDS=600.

    python -m tools.fuzzing.run [--seconds 60] [--folder build/fuzzing] [TARGET ...]

Ends with 1 where one ended in an exception that it does not declare, hung for 10 s, or took 1 GiB. What was found
stands in FOLDER/TARGET/failures; FOLDER/TARGET/corpus is where the next run begins. 2 where there is no atheris.
"""

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tools.fuzzing.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
_LIMITS = ("-timeout=10", "-rss_limit_mb=1024", "-max_len=16384", "-print_final_stats=1", "-verbosity=0")
_COUNT = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


def fuzzed(name: str, seconds: int, folder: Path) -> tuple[int, list[Path]]:
    """How often the target was run, and the files that tell its failures."""
    shutil.rmtree(folder / "failures", ignore_errors=True)
    command = [sys.executable, "-m", "tools.fuzzing.harness", name, str(folder), f"-max_total_time={seconds}", *_LIMITS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    count = _COUNT.search(done.stderr)
    failures = sorted((folder / "failures").iterdir()) if (folder / "failures").is_dir() else []
    if done.returncode and not failures:
        raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return int(count[1]) if count else 0, [each for each in failures if each.suffix != ".txt"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzzing")
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], metavar="TARGET")
    options = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: make fuzz-coverage does it, on Linux", file=sys.stderr)
        return 2
    failed = False
    for name in options.targets or TARGETS:
        count, failures = fuzzed(name, options.seconds, options.folder.resolve() / name)
        failed = failed or bool(failures)
        print(f"{name}: {count} executions in {options.seconds} s, {len(failures)} kinds of failure", flush=True)
        for each in failures:
            told = each.with_suffix(".txt")
            print(f"    {each}: {told.read_text().splitlines()[-1][:200] if told.exists() else 'hung, or too large'}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
