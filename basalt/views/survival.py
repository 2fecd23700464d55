"""What a job must survive, as its annotation says: the loss of any one domain of a tier."""

from basalt.objects import SURVIVE, KubeObject
from basalt.pointers import Pointer, get

AT: Pointer = ("metadata", "annotations", SURVIVE)
_JUDGED = {
    ("batch.volcano.sh", "Job"),
    ("batch.volcano.sh", "CronJob"),
    ("scheduling.volcano.sh", "PodGroup"),
    ("", "Pod"),
}  # what gets a verdict


def tier_of(declared: KubeObject) -> str | None:
    """The tier's name or number; None where nothing is asked."""
    value = get(declared.value, AT)
    return value if isinstance(value, str) and (declared.ref.group, declared.ref.kind) in _JUDGED else None
