"""Writes docs/tour.md, and the picture in it where a Chromium is there: what a reviewer sees of a pull request that
would strand a job. Every output on the page is that of the command above it."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # so that the checkout's own compiler runs, installed or not

from tools.docs.checkout import Checkout  # noqa: E402  # the path comes first

FILE = ROOT / "docs" / "tour.md"
PICTURE = ROOT / "docs" / "images" / "report.png"
_JOBS = "stacks/seed/jobs.yaml"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_PAGE = """\
# A pull request that would strand a job

Somebody wants the gang `allreduce` closer together: in one rack instead of under one leaf switch. Volcano would take
the change without a word, and the gang would stay Pending for ever.

```console
$ {diff}
{diff_output}
```

On their own machine, before anything is pushed, `check` says what is wrong with the line, and the ways out:

```console
$ {check}
{check_output}
```

`plan` says what the change does to what is declared already:

```console
$ {plan}
{plan_output}
```

In the pull request the same appears as one comment, edited in place at every push ([how](ci.md)):

```console
$ {report}
```

{report_output}

The artifact of the run has it as a page too, `--format html`, with the topology drawn:

![the report's page](images/report.png)

The way out that fits is the first one: leave the gang its leaf switch. What is left of the request is that the gang now
survives the loss of any one rack, which `check` proves, or refuses:

```console
$ {diff}
{mended_output}
```

```console
$ {check}
{mended_check}
```

```console
$ {fit}
{fit_output}
```
"""


def text(folder: Path) -> str:
    """The page; the folder is an empty one to work in."""
    checkout = Checkout(folder)
    commands = {
        "diff": "git diff --unified=0 --no-color",
        "check": "basalt check seed",
        "plan": "basalt plan main:stacks/seed stacks/seed",
        "report": "basalt report seed --base main:stacks/seed --format markdown",
        "fit": "basalt fit seed --job vision-train/allreduce",
    }
    checkout.change(_JOBS, "highestTier: leaf", "highestTier: rack")
    shown = {f"{name}_output": checkout.run(commands[name]) for name in ("diff", "check", "plan", "report")}
    checkout.change(_JOBS, "highestTier: rack", "highestTier: leaf, survive: rack")
    after = {
        "mended_output": checkout.run(commands["diff"]),
        "mended_check": checkout.run(commands["check"]),
        "fit_output": checkout.run(commands["fit"]),
    }
    page = _PAGE.format(**commands, **shown, **after)
    return "".join(line for line in page.splitlines(keepends=True) if not line.startswith("index "))  # names of blobs


def draw(folder: Path) -> bool:
    """Takes the picture; whether there was a browser for it."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        return False
    page = folder / "report.html"
    checkout = Checkout(folder / "checkout")
    checkout.change(_JOBS, "highestTier: leaf", "highestTier: rack")
    page.write_text(checkout.run("basalt report seed --base main:stacks/seed --format html"), encoding="utf-8")
    size = ["--window-size=1100,1250", "--hide-scrollbars", f"--screenshot={PICTURE}"]
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}", *size]
    PICTURE.parent.mkdir(exist_ok=True)
    subprocess.run([*command, page.as_uri()], check=True, capture_output=True, timeout=120)
    return True


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        FILE.write_text(text(Path(folder)), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "checkout").mkdir()
        drawn = draw(Path(folder))
    print(FILE.relative_to(ROOT), *([PICTURE.relative_to(ROOT)] if drawn else ["(no Chromium: the picture stays)"]))


if __name__ == "__main__":
    main()
