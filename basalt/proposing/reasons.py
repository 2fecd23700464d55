"""Why a level that could be a tier is none, and what in the labels looks like a slip."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from basalt import names
from basalt.names import counted
from basalt.proposing import composite
from basalt.proposing.levels import Kinds, Level

_Sides = dict[str, dict[str, list[str]]]  # lower domain -> upper domain -> nodes


def why_not(level: Level, chain: Sequence[Level], kinds: Kinds) -> str:
    """Why the level is in none of the chain's places."""
    if len(level.domains) == 1:
        return f"one value on {counted(level.carried, 'node')}: it keeps nothing apart"
    crossed = [each for each in chain if not level.lies_in(each) and not each.lies_in(level)]
    if not crossed:
        return "with it the tiers would not be a tree, for nodes that lack a label"
    worst = min(crossed, key=lambda each: (abs(len(each.domains) - len(level.domains)), each.title))
    lower, upper = sorted((level, worst), key=lambda each: -len(each.domains))
    split = _split(kinds, lower, upper)
    if 4 * len(split) > len(lower.domains):
        return f"crosses {worst.name} ({worst.title}): it tells another tree"
    return _slip(worst, lower, upper, split)


def _split(kinds: Kinds, lower: Level, upper: Level) -> _Sides:
    """The lower domains that lie under several of the upper ones."""
    above: _Sides = {}
    for nodes, own, over in zip(kinds.nodes.values(), lower.of, upper.of, strict=True):
        if own is not None and over is not None:
            above.setdefault(own, {}).setdefault(over, []).extend(node.name for node in nodes)
    return {own: sides for own, sides in above.items() if len(sides) > 1}


def counted_anew(level: Level, upper: Level) -> str:
    """Why a level is none whose values mean something else in each of the upper level's domains."""
    return (
        f"its {counted(len(level.domains), 'value')} are counted anew in the {len(upper.domains)} values of "
        f"{upper.title}: a tier of it needs the {upper.name} in the value"
    )


def _slip(other: Level, lower: Level, upper: Level, split: Mapping[str, Mapping[str, list[str]]]) -> str:
    own, sides = min(split.items())
    odd, few = min(sides.items(), key=lambda each: (len(each[1]), each[0]))
    some = f"{len(split)} of {counted(len(lower.domains), lower.name)} lie" + "s" * (len(split) == 1)
    return (
        f"does not nest with {other.name} ({other.label}): {some} under several {upper.name}s, {own} under "
        f"{names.listed(sorted(sides), 3)}, {odd} by {names.listed(sorted(few), 3)} only; "
        "where that is a slip, mend the label and run init again"
    )


def slips(kinds: Kinds, levels: Sequence[Level]) -> Iterator[str]:
    """Values that are built otherwise than all the others, which would tell several tiers."""
    for level in levels:
        if level.pattern is not None or level.is_part or not level.key.counted:
            continue
        value = composite.odd_one(Counter(level.domains))
        if value is not None:
            holders = zip(kinds.nodes.values(), level.of, strict=True)
            node = min(each.name for nodes, own in holders if own == value for each in nodes)
            yield (
                f"{level.label}={value} of {node} is built otherwise than the other values, which would tell several "
                "tiers: mend it and run init again, or declare the tiers by patterns"
            )
