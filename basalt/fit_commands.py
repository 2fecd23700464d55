"""`basalt fit`: will the declared jobs run?"""

import argparse
from collections.abc import Sequence

from basalt import names
from basalt.commands import compiled, exit_code, paint, print_findings, write
from basalt.findings import Severity
from basalt.fit import verdicts
from basalt.fit.verdicts import State, Verdict, summary
from basalt.loading.files import Misuse
from basalt.reporting import fit_text, json_format

Options = argparse.Namespace


def fit(options: Options) -> int:
    compilation = compiled(options, needs_environment=False)
    index = compilation.index
    if index.broken is not None:
        print_findings(compilation, options, to_stderr=options.format == "text")
        return 1
    found = _of_one(verdicts.of(index), options.job)
    if options.format == "json":
        jobs = {"jobs": [each.as_json() for each in found], "summary": summary(found)}
        write(json_format.text({"environment": compilation.name, **jobs}))
    else:
        write(fit_text.report(found, paint(options), quiet=options.quiet))
    if any(each.severity is Severity.ERROR and not each.waived for each in compilation.findings):
        print_findings(compilation, options, to_stderr=True)
    return max(exit_code(compilation, options), int(any(each.state is State.NEVER for each in found)))


def _of_one(found: Sequence[Verdict], name: str | None) -> Sequence[Verdict]:
    if name is None:
        return found
    chosen = [each for each in found if name in (str(each.job.key), each.job.key.name)]
    if not chosen:
        known = [str(each.job.key) for each in found]
        raise Misuse(f"no job {name}; {names.did_you_mean(name, known, otherwise='basalt fit lists all')}")
    return chosen
