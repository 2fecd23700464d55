"""`basalt fit`: will the declared jobs run?"""

import argparse
from collections.abc import Sequence

from basalt import names
from basalt.commands.printing import exit_code, paint, print_findings, write
from basalt.commands.reading import compiled
from basalt.findings import Severity
from basalt.fit import beside, losing, running, surviving
from basalt.fit.verdicts import State, Verdict, summary
from basalt.index import Index
from basalt.loading import files, snapshots
from basalt.loading.snapshots import Snapshot
from basalt.loading.sources import Misuse
from basalt.reporting import fit_text, json_format

Options = argparse.Namespace


def fit(options: Options) -> int:
    if options.lose and options.lose_any:
        raise Misuse("--lose and --lose-any exclude each other; --lose takes several names")
    snapshot = snapshots.read(files.argument(options.snapshot)) if options.snapshot is not None else None
    compilation = compiled(options, needs_environment=False)
    index = compilation.index
    if index.broken is not None:
        print_findings(compilation, options, to_stderr=options.format == "text")
        return 1
    index = index if snapshot is None else running.cluster(index, snapshot)
    try:
        if options.lose_any:
            return _fit_without_any(compilation.name, index, options, snapshot)
        lost = losing.nodes_of(index, options.lose or ())
        now = beside.judged(index, snapshot, lost) if snapshot is not None else None
        found = _of_one(now.verdicts if now is not None else losing.without(index, lost), options.job)
    except losing.Unknown as unknown:
        otherwise = "basalt topology shows what there is" if unknown.known else "none is declared"
        hint = names.did_you_mean(unknown.name, unknown.known, otherwise=otherwise)
        raise Misuse(f"nothing is named {unknown.name}; {hint}") from None
    if options.format == "json":
        jobs = {"jobs": [each.as_json() for each in found], "summary": summary(found)}
        runs = {"running": [each.as_json() for each in now.places]} if now is not None else {}
        write(json_format.text({"environment": compilation.name, **jobs, **runs}))
    else:
        survivals = () if lost or now is not None else surviving.of(index)
        write(fit_text.report(found, survivals, paint(options), quiet=options.quiet, now=now))
    if any(each.severity is Severity.ERROR and not each.waived for each in compilation.findings):
        print_findings(compilation, options, to_stderr=True)
    return max(exit_code(compilation, options), int(any(each.state is State.NEVER for each in found)))


def _fit_without_any(name: str, index: Index, options: Options, snapshot: Snapshot | None) -> int:
    if options.job is not None:
        _of_one(losing.without(index, frozenset(), snapshot), options.job)  # so that the name is one
    every = losing.falls(index, options.lose_any, snapshot)
    found = [each for each in every if options.job in (None, str(each.after.job.key), each.after.job.key.name)]
    if options.format == "json":
        falls = [{"lost": each.domain, "before": each.before.state.value, **each.after.as_json()} for each in found]
        write(json_format.text({"environment": name, "lose": options.lose_any, "jobs": falls}))
    else:
        write(fit_text.falls(found, options.lose_any, paint(options)))
    return int(any(each.after.state is State.NEVER for each in found))


def _of_one(found: Sequence[Verdict], name: str | None) -> Sequence[Verdict]:
    if name is None:
        return found
    chosen = [each for each in found if name in (str(each.job.key), each.job.key.name)]
    if not chosen:
        known = [str(each.job.key) if "/" in name else each.job.key.name for each in found]
        raise Misuse(f"no job {name}; {names.did_you_mean(name, known, otherwise='basalt fit lists all')}")
    return chosen
