"""`basalt sandbox`: a control plane on this machine, with the environment's nodes."""

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from basalt import names
from basalt.cluster import connection
from basalt.commands.printing import write
from basalt.commands.reading import sound
from basalt.gathering.folders import folder_of
from basalt.loading.sources import Misuse
from basalt.names import counted
from basalt.reporting import json_format
from basalt.reporting.text import argument, printable
from basalt.sandbox import manifests, observing, programs, sandboxes
from basalt.sandbox.control_plane import Failed
from basalt.sandbox.go_programs import Refusal
from basalt.sandbox.manifests import Wanted
from basalt.sandbox.observing import Gang
from basalt.sandbox.sandboxes import Sandbox

Options = argparse.Namespace
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def sandbox(options: Options) -> int:
    return {"up": _up, "down": _down, "status": _status}[options.action](options)


def _up(options: Options) -> int:
    if (compilation := sound(options, needs_environment=False)) is None:
        return 1
    name = options.name or compilation.name
    if not _NAME.fullmatch(name):
        raise Misuse(f"a sandbox cannot be named {name}: its name takes letters, digits, '.', '_' and '-'; give --name")
    wanted = manifests.wanted(compilation)
    try:
        environment, built = folder_of(options.environment), programs.programs(_progress(options))
        made = sandboxes.up(name, environment, wanted, built, _progress(options))
    except Refusal as error:
        raise Misuse(str(error)) from None
    except (Failed, connection.Refusal, connection.Unreachable) as error:
        raise Misuse(f"{name} did not come up: {error}") from None
    _show_up(made, wanted, options)
    if options.foreground:
        sys.stdout.flush()
        sandboxes.hold(made)
    return 0


def _show_up(made: Sandbox, wanted: Wanted, options: Options) -> None:
    if options.format == "json":
        write(json_format.text({**_as_json(made), "nodes": len(wanted.nodes), "notes": list(wanted.notes)}))
        return
    if not options.quiet:
        versions = f"Kubernetes {programs.KUBERNETES}, Volcano {programs.VOLCANO}"
        write(f"{made.name} is up: {counted(len(wanted.nodes), 'node')}, {versions}\n\n")
    write(f"{_export(made)}\n")
    if not options.quiet:
        end = "Ctrl-C takes it down" if options.foreground else f"basalt sandbox down {made.name}"
        write(f"\nnext: basalt apply {argument(options.environment)}    basalt sandbox status    {end}\n")


def _down(options: Options) -> int:
    found = _chosen(options)
    for each in found:
        sandboxes.down(each)
    if options.format == "json":
        write(json_format.text({"down": [each.name for each in found]}))
    elif not options.quiet:
        write("".join(f"{each.name} is down\n" for each in found) or "no sandbox is there\n")
    return 0


def _chosen(options: Options) -> list[Sandbox]:
    """The sandboxes that `down` means: one by its name or its environment's folder, the only one, or all."""
    known = {each.name: each for each in sandboxes.sandboxes()}
    if options.all and options.name is not None:
        raise Misuse(f"--all is every sandbox; leave out {options.name}, or --all")
    if options.all:
        return list(known.values())
    if options.name is None:
        if len(known) > 1:
            raise Misuse(f"there are several sandboxes: {', '.join(known)}; name one, or give --all")
        return list(known.values())
    return [_named(options.name, known)]


def _named(given: str, known: Mapping[str, Sandbox]) -> Sandbox:
    """The sandbox of that name, or of the environment in that folder."""
    if given in known:
        return known[given]
    folders = {str(Path(each).resolve()) for each in (given, Path("stacks", given))}
    found = [each for each in known.values() if each.environment in folders]
    if len(found) != 1:
        hint = names.did_you_mean(given, known, otherwise="basalt sandbox status lists them")
        raise Misuse(f"no sandbox {given}; {hint}" if not found else f"several sandboxes are of {given}; name one")
    return found[0]


def _status(options: Options) -> int:
    known = {each.name: each for each in sandboxes.sandboxes()}
    found = list(known.values()) if options.name is None else [_named(options.name, known)]
    seen = {each.name: _gangs(each) for each in found}
    if options.format == "json":
        states = [{**_as_json(each), "jobs": [gang.as_json() for gang in seen[each.name]]} for each in found]
        write(json_format.text({"sandboxes": states}))
        return 0
    for each in found:
        if options.quiet:
            write(f"{_export(each)}\n")
        else:
            write(f"{each.name}: {each.state}\n  {_export(each)}\n")
            write("".join(f"  {printable(_shown(gang))}\n" for gang in seen[each.name]))
    if not found and not options.quiet:
        write("no sandbox is there\n")
    return int(any(each.state not in ("running", "starting") for each in found))


def _gangs(sandbox: Sandbox) -> list[Gang]:
    """The gangs in it; none where it cannot be asked."""
    if not sandbox.is_complete or {"kube-apiserver", "etcd"} & {*sandbox.stopped}:
        return []
    cluster = connection.connect(str(sandbox.kubeconfig))
    kinds = (
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
        ("v1", "Pod"),
        ("topology.volcano.sh/v1alpha1", "HyperNode"),
        ("v1", "Node"),
    )
    try:
        return observing.gangs(*(cluster.list(*kind) for kind in kinds))
    except (connection.Refusal, connection.Unreachable) as error:
        raise Misuse(f"{sandbox.name}: {error}") from None
    finally:
        cluster.close()


def _shown(gang: Gang) -> str:
    """vision-train/allreduce Running: 8 pods, 6 needed, in s0-s2 (leaf): te5 2, te6 2"""
    found = f"{gang.namespace}/{gang.name} {gang.phase}: {counted(gang.running, 'pod')} running, {gang.minimum} needed"
    if gang.placement:
        where = f", in {gang.domain} ({gang.tier})" if gang.domain else ""
        found += f"{where}: " + ", ".join(f"{node} {count}" for node, count in gang.placement.items())
    return f"{found}; {gang.reason}" if gang.reason else found


def _export(sandbox: Sandbox) -> str:
    return f"export KUBECONFIG={shlex.quote(str(sandbox.kubeconfig))}"


def _as_json(sandbox: Sandbox) -> dict[str, Any]:
    running = {each.name: each.pid for each in sandbox.processes if each.is_running}
    return {
        "name": sandbox.name,
        "state": sandbox.state,
        "kubeconfig": str(sandbox.kubeconfig),
        "processes": running,
        "stopped": list(sandbox.stopped),
    }


def _progress(options: Options) -> Callable[[str], None]:
    def show(line: str) -> None:
        if not options.quiet:
            print(line, file=sys.stderr, flush=True)

    return show
