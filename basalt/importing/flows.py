"""JobFlows to what their steps say of them. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import get

Step = tuple[str, str]  # namespace, name of the JobTemplate


def steps(objects: Iterable[KubeObject]) -> dict[Step, Mapping[str, Any]]:
    """The flow of each JobTemplate, as a TrainingJob writes it; those that several flows name are left out."""
    found: dict[Step, Mapping[str, Any]] = {}
    named: Counter[Step] = Counter()
    for each in objects:
        if (each.ref.group, each.ref.kind) == ("flow.volcano.sh", "JobFlow"):
            for step in map(mapping, sequence(each.spec.get("flows"))):
                key = (each.ref.namespace or "default", str(step.get("name")))
                after = sequence(get(step, ("dependsOn", "targets")))
                named[key] += 1
                found[key] = {"name": each.name, **({"after": after} if after else {})}
    return {key: flow for key, flow in found.items() if named[key] == 1}
