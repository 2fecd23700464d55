"""`basalt apply` and `basalt verify`: the environment and the cluster of a kubeconfig."""

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from basalt.cluster import connection, planning, verifying
from basalt.cluster.applying import Applier, Failed
from basalt.cluster.comparing import Change
from basalt.cluster.connection import Cluster, Refusal, Unreachable
from basalt.cluster.planning import Action, Step
from basalt.cluster.verifying import State, Verdict
from basalt.commands.printing import write
from basalt.commands.reading import sound
from basalt.compiling import Compilation
from basalt.findings import Ref, Source
from basalt.loading.sources import Misuse
from basalt.names import counted
from basalt.objects import KubeObject, defined_kind, mapping
from basalt.pointers import dotted, has, render
from basalt.rendering import layout
from basalt.rendering.layout import Phase
from basalt.reporting import json_format
from basalt.reporting.text import printable

Options = argparse.Namespace
_CHARTS = "15-charts"
_LONGEST = 160  # characters of a value
_SHOWN = 5  # changes of one object


def apply(options: Options) -> int:
    if (compilation := sound(options)) is None:
        return 1
    cluster = _connected(options)
    try:
        return _apply(cluster, compilation, options)
    except (Refusal, Unreachable) as error:
        raise _as_misuse(cluster, error) from None
    finally:
        cluster.close()


def _apply(cluster: Cluster, compilation: Compilation, options: Options) -> int:
    phases = layout.phases(each for each in compilation.objects if each.name)
    _refuse_strange_kinds(cluster, compilation, phases)
    _refuse_strange_namespaces(cluster, compilation, phases)
    planned = planning.plan(cluster, phases, force=options.force_conflicts)
    steps = [step for _, inside in planned for step in inside]
    if obstacles := _obstacles(steps):
        _show_obstacles(cluster, obstacles)
        _show_applied(
            cluster, compilation, [(step, _REFUSED if step in obstacles else _LEFT) for step in steps], options
        )
        return 1
    due = [(phase, inside) for phase, inside in planned if any(each.action is not Action.KEEP for each in inside)]
    is_asking = bool(due) and not options.yes
    if (options.format == "text" and not options.quiet) or is_asking:
        _say(_plan_text(cluster, compilation, due), to_stderr=options.format != "text")
    if is_asking and not _agreed(cluster):
        return 1
    outcome = {id(step): _DONE[step.action] if step.action is Action.KEEP else _LEFT for step in steps}
    try:
        for phase, inside in due:
            _apply_phase(cluster, phase, inside, options)
            outcome.update({id(step): _DONE[step.action] for step in inside})
    except (Failed, Refusal, Unreachable) as failure:
        print(printable(_one_line(str(failure))), file=sys.stderr)
        print("stopped there: what came before is applied", file=sys.stderr)
        _show_applied(cluster, compilation, [(step, outcome[id(step)]) for step in steps], options)
        return 1
    _show_applied(cluster, compilation, [(step, outcome[id(step)]) for step in steps], options)
    return 0


def _say(text: str, *, to_stderr: bool = False) -> None:
    """Writes at once. Nobody reading any more is no reason to stop half-way."""
    stream = sys.stderr if to_stderr else sys.stdout
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _apply_phase(cluster: Cluster, phase: Phase, steps: Sequence[Step], options: Options) -> None:
    said: list[str] = []

    def waiting(what: str) -> None:
        if what not in said and not options.quiet:
            said.append(what)
            print(f"{phase.part}: {printable(what)}", file=sys.stderr, flush=True)

    Applier(cluster, options.force_conflicts, options.timeout, waiting).apply(phase)
    if not options.quiet:
        done = _in_words((_DONE[each.action] for each in steps), dict.fromkeys(_DONE.values()))
        print(f"{phase.part}: {done}", file=sys.stderr, flush=True)


def _refuse_strange_kinds(cluster: Cluster, compilation: Compilation, phases: Sequence[Phase]) -> None:
    """Stops before anything is applied where a kind will never be served: no definition of it is applied, and no
    chart that the cluster's own tools install can bring it."""
    strange = planning.strange_kinds(cluster, phases)
    defined = {
        defined_kind(each) for phase in phases for each in phase.objects if each.ref.group == "apiextensions.k8s.io"
    }
    lost = {kind: each for kind, each in strange.items() if (kind[0].rpartition("/")[0], kind[1]) not in defined}
    if not lost or compilation.engine != "pulumi":
        return
    kinds = ", ".join(f"{kind} of {version} ({counted(len(each), 'object')})" for (version, kind), each in lost.items())
    charts = ", ".join(str(each.spec.get("chart")) for each in compilation.objects if layout.is_release(each))
    hint = f"install the charts first ({charts}), as pulumi up does" if charts else "install what defines them first"
    raise Misuse(f"{cluster.context} ({cluster.server}) does not serve {kinds}; {hint}")


def _refuse_strange_namespaces(cluster: Cluster, compilation: Compilation, phases: Sequence[Phase]) -> None:
    """The same for namespaces: charts may make some, but none for themselves."""
    is_early = compilation.engine != "pulumi"
    strange = planning.strange_namespaces(cluster, [each for each in phases if not is_early or each.part <= _CHARTS])
    if not strange:
        return
    named = ", ".join(f"{name} ({counted(len(each), 'object')})" for name, each in sorted(strange.items()))
    where = f"{cluster.context} ({cluster.server})"
    raise Misuse(f"{where} has no namespace {named}, and nobody declares it; make it first, or add its manifest")


def _obstacles(steps: Sequence[Step]) -> list[Step]:
    """What the cluster refuses already now, and would still refuse when its turn comes. A webhook may change its mind:
    it asks for other objects, such as a parent queue, which are applied before, or it does not answer yet."""
    found = []
    is_moving = False
    for step in steps:
        is_moving = is_moving or step.action in (Action.CREATE, Action.CHANGE)
        refusal = step.refusal
        if refusal is not None and not refusal.may_pass and not (is_moving and refusal.is_of_webhook):
            found.append(step)
    return found


def _show_obstacles(cluster: Cluster, obstacles: Iterable[Step]) -> None:
    print(f"{cluster.context} ({cluster.server}) would refuse; nothing was applied", file=sys.stderr)
    for step in obstacles:
        refusal = step.refusal
        assert refusal is not None
        print(
            f"{step.object.position(())}: {step.object.ref}: {printable(_one_line(refusal.message))}", file=sys.stderr
        )
        if refusal.is_conflict:
            print("  hint: agree with the owner, or take the fields over with --force-conflicts", file=sys.stderr)


def _plan_text(cluster: Cluster, compilation: Compilation, due: Sequence[tuple[Phase, Sequence[Step]]]) -> str:
    lines = [f"{compilation.name} -> {cluster.context} ({cluster.server})"]
    for phase, steps in due:
        lines.append(f"  {phase.part}: {_counted(each.action for each in steps)}")
        for step in steps:
            if step.refusal is not None:
                reason = printable(_one_line(step.refusal.message))
                lines.append(f"    {step.object.ref}: refused as things are now, tried again in its turn: {reason}")
            lines.extend(f"    {line}" for line in _changed(step.object.ref, step.changes))
    lines.extend(["  nothing to change"] if not due else [])
    lines.extend(f"  not applied: {line}" for line in _left_out(compilation))
    return "".join(f"{line}\n" for line in lines)


def _changed(ref: Ref, changes: Sequence[Change]) -> list[str]:
    lines = [f"{ref} {dotted(each.pointer)}: {_shown(each.before)} -> {_shown(each.after)}" for each in changes]
    more = [f"{ref}: {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return [printable(line) for line in [*lines[:_SHOWN], *more]]


def _shown(value: Any) -> str:
    """A value of the cluster; lists and maps in short, since what differs may be in them."""
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _left_out(compilation: Compilation) -> list[str]:
    """What no API server is given, and why."""
    charts = [each for each in compilation.objects if layout.is_release(each)]
    named = ", ".join(f"{each.spec.get('chart')} {each.spec.get('version')}" for each in charts)
    withheld = [f"{each.ref}: it holds secret values" for each in compilation.objects if layout.is_withheld(each)]
    unnamed = [each for each in compilation.objects if not each.name and _generates(each)]
    nameless = [f"{each.ref.kind} at {each.position(())}: generateName makes a new one each time" for each in unnamed]
    return [*nameless, *([f"the charts {named}: pulumi up installs them"] if charts else []), *withheld]


def _generates(declared: KubeObject) -> bool:
    return bool(mapping(declared.value.get("metadata")).get("generateName"))


_TO_DO = {Action.CREATE: "to create", Action.CHANGE: "to change", Action.ADOPT: "to adopt", Action.KEEP: "unchanged",
          Action.REFUSED: "to try again"}  # fmt: skip
_DONE = {Action.CREATE: "created", Action.CHANGE: "changed", Action.ADOPT: "adopted", Action.KEEP: "unchanged",
         Action.REFUSED: "changed"}  # fmt: skip
_LEFT, _REFUSED = "not applied", "refused"


def _counted(actions: Iterable[Action]) -> str:
    return _in_words((_TO_DO[each] for each in actions), dict.fromkeys(_TO_DO.values()))


def _in_words(found: Iterable[str], order: Iterable[str]) -> str:
    counts = Counter(found)
    return ", ".join(f"{counts[word]} {word}" for word in order if counts[word])


def _agreed(cluster: Cluster) -> bool:
    if not sys.stdin.isatty():
        raise Misuse(f"apply asks before it changes {cluster.context}; give --yes where nobody can answer")
    print(f"apply to {cluster.context}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().casefold() in ("y", "yes"):
        return True
    print("nothing was applied", file=sys.stderr)
    return False


def _show_applied(
    cluster: Cluster, compilation: Compilation, outcome: Sequence[tuple[Step, str]], options: Options
) -> None:
    words = [*dict.fromkeys(_DONE.values()), _LEFT, _REFUSED]
    if options.format == "json":
        objects = [{**_ref_json(step.object), "action": word, **_step_json(step)} for step, word in outcome]
        counts = Counter(word for _, word in outcome)
        summary = {word: counts[word] for word in words if counts[word] or word not in (_LEFT, _REFUSED)}
        found = {"cluster": _cluster_json(cluster), "objects": objects, "summary": summary}
        _say(json_format.text({"environment": compilation.name, **found}))
    elif not options.quiet and not any(word == _REFUSED for _, word in outcome):
        _say(f"{counted(len(outcome), 'object')}: {_in_words((word for _, word in outcome), words)}\n")


def _step_json(step: Step) -> dict[str, Any]:
    changes = [{"pointer": render(each.pointer), "before": each.before, "after": each.after} for each in step.changes]
    return {"changes": changes, "refusal": _one_line(step.refusal.message) if step.refusal else None}


def verify(options: Options) -> int:
    if (compilation := sound(options)) is None:
        return 1
    cluster = _connected(options)
    try:
        verdicts = verifying.verify(cluster, [each for each in layout.in_apply_order(compilation.objects) if each.name])
    except (Refusal, Unreachable) as error:
        raise _as_misuse(cluster, error) from None
    finally:
        cluster.close()
    counts = Counter(each.state for each in verdicts)
    foreign = sum(len(each.foreign) for each in verdicts)
    if options.format == "json":
        found = {"objects": [_verdict_json(each) for each in verdicts], "summary": {
            **{state.value: counts[state] for state in State}, "foreign": foreign}}  # fmt: skip
        write(json_format.text({"environment": compilation.name, "cluster": _cluster_json(cluster), **found}))
    else:
        lines = sorted(line for each in verdicts for line in _verdict_lines(each, quiet=options.quiet))
        write("".join(f"{source}: {printable(line)}\n" for source, line in lines))
        if not options.quiet:
            states = ", ".join(f"{counts[state]} {_WORDS[state]}" for state in State if counts[state])
            others = f"; {counted(foreign, 'field')} of others" if foreign else ""
            write(f"{counted(len(verdicts), 'object')} in {cluster.context} ({cluster.server}): {states}{others}\n")
    return int(counts[State.SAME] < len(verdicts) or bool(options.strict and foreign))


_WORDS = {State.SAME: "as declared", State.DRIFTED: "drifted", State.MISSING: "missing", State.REFUSED: "refused"}


def _verdict_lines(verdict: Verdict, *, quiet: bool) -> Iterator[tuple[Source, str]]:
    """What there is to say, each with its place in the documents."""
    declared = verdict.object
    here = declared.position(())
    if verdict.state is State.MISSING:
        yield here, f"{declared.ref}: {verdict.refusal or 'missing'}"
    if verdict.state is State.REFUSED:
        yield here, f"{declared.ref}: the cluster refuses it as declared: {_one_line(verdict.refusal)}"
    for drift in verdict.drifts:
        pointer, live, wanted = drift.change
        by = f" ({', '.join(drift.managers)})" if drift.managers else ""
        what = f"declared {_shown(wanted)}, the cluster has {_shown(live)}{by}"
        yield declared.position(pointer), f"{declared.ref} {dotted(pointer)}: {what}"
    if not quiet:
        for field in verdict.foreign:
            what = "as declared, but" if has(declared.value, field.pointer) else "not declared,"
            yield here, f"{declared.ref} {dotted(field.pointer)}: {what} owned by {field.manager}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    changes = [
        {"pointer": render(each.change.pointer), "declared": each.change.after, "live": each.change.before,
         "managers": each.managers}
        for each in verdict.drifts
    ]  # fmt: skip
    foreign = [{"pointer": render(each.pointer), "manager": each.manager} for each in verdict.foreign]
    found = {"state": verdict.state.value, "changes": changes, "foreign": foreign, "refusal": verdict.refusal or None}
    return {**_ref_json(verdict.object), **found}


def _ref_json(declared: KubeObject) -> dict[str, Any]:
    ref = declared.ref
    return {"apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _cluster_json(cluster: Cluster) -> dict[str, str]:
    return {"context": cluster.context, "server": cluster.server}


def _connected(options: Options) -> Cluster:
    """The cluster, once it has answered: many requests at once are no way to find out that it does not."""
    cluster = connection.connect(options.kubeconfig, options.context)
    try:
        cluster.request("GET", "/version")
    except Unreachable as error:
        raise _as_misuse(cluster, error) from None
    except Refusal:  # even that may be forbidden
        pass
    return cluster


def _as_misuse(cluster: Cluster, error: Exception) -> Misuse:
    return Misuse(f"{cluster.context} ({cluster.server}): {error}")
