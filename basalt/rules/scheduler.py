"""Whether the parts of a scheduler configuration fit together, and the rest of the environment."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from basalt import names
from basalt.facts import Fact
from basalt.findings import Problem, Severity
from basalt.index import Index
from basalt.objects import KubeObject, mapping, sequence
from basalt.pointers import Pointer, has
from basalt.rules import scheduler_text
from basalt.rules.rule import Rule
from basalt.views import leadership, misspelling
from basalt.views import scheduler_catalogue as catalogue
from basalt.views.scheduler_configuration import PREEMPTING, Configuration, Plugin

_EVICTING = ("preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim")
_KEYS = frozenset((*catalogue.PLUGIN, *catalogue.FLAGS))
# deviceshare.go, enablePredicate: klog.Fatal where two of them are on.
_DEVICE_MODES = ("deviceshare.GPUSharingEnable", "deviceshare.GPUNumberEnable", "deviceshare.VGPUEnable")
_KEEPERS = ("capacity", "proportion")  # the plugins that say what a queue may have
# Which plugins name victims for which action: AddPreemptableFn, AddReclaimableFn and AddUnifiedEvictableFn in them.
_NAMES_VICTIMS: Mapping[str, tuple[str, ...]] = {
    "preempt": ("priority", "gang", "conformance"),
    "reclaim": ("gang", "conformance"),
    "gangpreempt": ("priority", "gang", "conformance"),
    "gangreclaim": ("priority", "gang", "conformance"),
}
_VICTIM_FLAGS = {"preempt": "enablePreemptable", "reclaim": "enableReclaimable"}
_PREEMPTING = "PreemptLowerPriority"


class _Need(NamedTuple):
    """Something that is configured and acts only through one of the actions."""

    actions: tuple[str, ...]
    does: str
    hint: str


_PREEMPTS = _Need(PREEMPTING, "preempts", "gangpreempt (before Volcano 1.15: preempt)")
_RECLAIMS = _Need(("reclaim", "gangreclaim"), "reclaims", "gangreclaim (before Volcano 1.15: reclaim)")
_EVICTS_GANGS = _Need(("gangpreempt", "gangreclaim"), "evicts whole gangs", "gangpreempt or gangreclaim")
_SHUFFLES = _Need(("shuffle",), "evicts what it picks", "shuffle")
# By flag, the plugins that it concerns: AddPreemptableFn, AddReclaimableFn and AddPreemptiveFn in them.
_BY_FLAG = {
    "enablePreemptable": (_PREEMPTS, ("priority", "gang", "conformance", "drf", "tdm", "pdb", "cdp", "extender")),
    "enableReclaimable": (_RECLAIMS, ("gang", "conformance", *_KEEPERS, "drf", "pdb", "cdp", "extender")),
    "enablePreemptive": (_RECLAIMS, _KEEPERS),
}
_BY_ARGUMENT = {
    ("capacity", "ancestorReclaimLevel"): _RECLAIMS,
    ("network-topology-aware", "hypernode.gradient.evict.max-hypernodes"): _EVICTS_GANGS,
    ("tdm", "tdm.evict.period"): _SHUFFLES,
}


def scheduler_plugins_agree(index: Index) -> Iterator[Problem]:
    for configuration in index.scheduler_configurations:
        yield from _two_keepers(configuration)
        yield from _hierarchy_beside_proportion(configuration)
        yield from _device_modes(configuration)


def _two_keepers(configuration: Configuration) -> Iterator[Problem]:
    keepers = [plugin for plugin in configuration.plugins() if plugin.name in _KEEPERS]
    second = next((plugin for plugin in keepers if plugin.name != keepers[0].name), None)
    if second is not None:
        message = "capacity and proportion are both on: each limits the queues in its own way, and both must agree"
        hint = "keep one: capacity, which reads deserved and guarantee, or proportion, which reads weight"
        yield configuration.problem((*second.pointer, "name"), message, hint)


def _hierarchy_beside_proportion(configuration: Configuration) -> Iterator[Problem]:
    tiers = [plugin.tier for plugin in configuration.plugins() if plugin.name == "proportion"]
    for plugin in configuration.plugins():
        if plugin.name != "drf" or not tiers or leadership.says(plugin.settings.get("enableHierarchy")) is not True:
            continue
        if plugin.tier in tiers:
            message = (
                f"drf with enableHierarchy and proportion stand in tier {plugin.tier + 1}:"
                " Volcano refuses the whole configuration"
            )
        else:
            message = (
                f"drf with enableHierarchy (tier {plugin.tier + 1}) and proportion (tier {tiers[0] + 1}) both divide"
                " the cluster among the queues; Volcano refuses them only within one tier"
            )
        hint = "take proportion out, or enableHierarchy of drf"
        yield configuration.problem((*plugin.pointer, "enableHierarchy"), message, hint)


def _device_modes(configuration: Configuration) -> Iterator[Problem]:
    """Later entries of the plugin change what earlier ones set: the modes are global variables of Volcano's."""
    on: dict[str, Pointer] = {}
    for plugin in configuration.plugins():
        arguments = mapping(plugin.settings.get("arguments")) if plugin.name == "deviceshare" else {}
        for mode in filter(_DEVICE_MODES.__contains__, arguments):
            value = leadership.says(arguments[mode])
            if value is not None:
                on.pop(mode, None)
            if value:
                on[mode] = (*plugin.pointer, "arguments", mode)
        if len(on) > 1:
            modes = " and ".join(mode.removeprefix("deviceshare.") for mode in on)
            message = f"{modes} exclude each other: the scheduler stops as soon as it reads them"
            yield configuration.problem([*on.values()][-1], message, "keep one of them")
            return


def scheduler_action_is_present(index: Index) -> Iterator[Problem]:
    for configuration in index.scheduler_configurations:
        if configuration.actions:
            yield from _without_action(index, configuration)


def _without_action(index: Index, configuration: Configuration) -> Iterator[Problem]:
    listed = ", ".join(configuration.actions)
    meant = {
        names.nearest(action, catalogue.ACTIONS) or action for action in configuration.actions
    }  # misspelt: another rule
    named: set[str] = set()
    for at, name in _configured_actions(configuration):
        if name not in meant and name not in named:
            named.add(name)
            message = f"{name} has a configuration and is not among the actions: {listed}"
            hint = f"add {name} to the actions, or take its configuration out"
            yield configuration.problem(("configurations", at, "name"), message, hint)
    done: set[_Need] = set()
    for need, pointer, what in _signs(index, configuration):
        if need not in done and (meant | named).isdisjoint(need.actions):
            done.add(need)
            message = f"{what}, and none of the actions ({listed}) {need.does}"
            yield configuration.problem(pointer, message, f"add {need.hint} to the actions")


def _configured_actions(configuration: Configuration) -> Iterator[tuple[int, str]]:
    """The entries of `configurations` for actions that evict. gangpreempt reads allocate's, be it an action or not."""
    for at, entry in enumerate(sequence(mapping(configuration.value).get("configurations"))):
        name = mapping(entry).get("name")
        if name in _EVICTING:
            yield at, str(name)


def _signs(index: Index, configuration: Configuration) -> Iterator[tuple[_Need, Pointer, str]]:
    """What says that something is to be evicted: what it needs, where it stands, and how a message begins."""
    for plugin in configuration.plugins():
        if plugin.name == "rescheduling" and _is_on(plugin, "enabledVictim"):
            yield _SHUFFLES, (*plugin.pointer, "name"), "rescheduling is on"
        for flag, (need, concerned) in _BY_FLAG.items():
            if plugin.name in concerned and leadership.says(plugin.settings.get(flag)) is True:
                yield need, (*plugin.pointer, flag), f"{flag} of {plugin.name} is true"
        arguments = mapping(plugin.settings.get("arguments"))
        for (name, argument), need in _BY_ARGUMENT.items():
            if plugin.name == name and arguments.get(argument):
                pointer = (*plugin.pointer, "arguments", argument)
                yield need, pointer, f"{argument} of {name} is set"
    if configuration is index.scheduler and (preempting := [*filter(_says_preempting, index.of_kind("PriorityClass"))]):
        classes = names.listed(each.name for each in preempting)
        yield _PREEMPTS, ("actions",), f"preemptionPolicy of {classes} is {_PREEMPTING}"


def _says_preempting(declared: KubeObject) -> bool:
    """Whether somebody wrote it: it is the API's default, which a class that was read from a cluster shows."""
    field = "preemptionPolicy"
    is_read_back = "uid" in mapping(declared.value.get("metadata"))
    says = declared.value.get(field) == _PREEMPTING
    return says and not is_read_back and has(declared.written.value, declared.origin((field,)))


class _Late(NamedTuple):
    """The plugin that keeps queues what they may have, and those that name victims in the tiers above it."""

    keeper: Plugin
    first: tuple[Plugin, ...]


def scheduler_tiers_are_ordered(index: Index) -> Iterator[Problem]:
    for configuration in index.scheduler_configurations:
        late = {action: found for action in _NAMES_VICTIMS if (found := _asked_late(configuration, action))}
        if late:
            yield _out_of_order(configuration, late)


def _asked_late(configuration: Configuration, action: str) -> _Late | None:
    """Session.Preemptable, Reclaimable and UnifiedEvictable take the victims of the first tier that names any. The
    last heeds no flag."""
    if not configuration.has_action(action):
        return None
    flag = _VICTIM_FLAGS.get(action)
    heard = [each for each in configuration.plugins() if flag is None or _is_on(each, flag)]
    keeper = next((each for each in heard if each.name in _KEEPERS), None)
    if keeper is None:
        return None
    first = tuple(each for each in heard if each.name in _NAMES_VICTIMS[action] and each.tier < keeper.tier)
    return _Late(keeper, first) if first else None


def _out_of_order(configuration: Configuration, late: Mapping[str, _Late]) -> Problem:
    keeper, first = min(late.values(), key=lambda each: len(each.first))  # what is true of every action
    tier, target = f"tier {keeper.tier + 1}", f"tier {first[0].tier + 1}"
    name, amount = keeper.name, "deserved" if keeper.name == "capacity" else "share"
    if late.keys().isdisjoint(("reclaim", "gangreclaim")):
        asked, loses, hint = (
            f", and {name} in {tier} is never asked",
            "",
            f"move {name} up to {target}, before reclaim is on too",
        )
    elif name == "proportion" and "reclaim" not in late:
        asked, loses = f", and proportion in {tier} is never asked", f": queues within their {amount} lose pods"
        hint = f"put capacity into {target} in place of proportion, which gangreclaim asks in no tier"
    else:
        asked, loses = f" before {name} in {tier} is asked", f": queues within their {amount} lose pods"
        hint = f"move {name} up to {target}"
    chosen = ", ".join(f"{each.name} (tier {each.tier + 1})" for each in first)
    message = f"the victims of {' and '.join(late)} are chosen by {chosen}{asked}{loses}"
    return configuration.problem((*keeper.pointer, "name"), message, hint)


def gang_allows_preemption(index: Index) -> Iterator[Problem]:
    flag = "enablePreemptable"
    for configuration in index.scheduler_configurations:
        if not configuration.has_action("preempt"):
            continue  # gangpreempt does not ask it: Session.UnifiedEvictable
        for plugin in configuration.plugins():
            if plugin.name == "gang" and _is_on(plugin, flag):
                says = f"{flag}: true" if plugin.settings.get(flag) else f"no {flag}: false"
                message = (
                    f"preempt is on, and gang has {says}: it spares every job that runs with just its minAvailable"
                )
                at = flag if flag in plugin.settings else "name"
                hint = f"set {flag}: false on gang, or use gangpreempt (from Volcano 1.15), which evicts whole gangs"
                yield configuration.problem((*plugin.pointer, at), message, hint)


def _is_on(plugin: Plugin, flag: str) -> bool:
    """Whether the flag, which defaults to true, is on: not where a wrong value or a misspelt key may mean otherwise,
    which other rules speak about."""
    if plugin.settings.get(flag) is not None:
        return leadership.says(plugin.settings[flag]) is True
    return misspelling.misspelt(plugin.settings, (flag,), _KEYS) is None


def one_scheduler_leads(index: Index) -> Iterator[Problem]:
    for each in leadership.leaderless(index.others, index.chart_values):
        parts = " and ".join(f"{count} replicas of {part}" for part, count in each.replicas.items())
        message = f"{parts} run without leader election ({each.reason}): each acts as if it were the only one"
        switch = f"{leadership.CHART_SWITCH}: true" if each.is_chart else f"{leadership.FLAG}=true"
        yield Problem(each.place, each.pointer, message, f"set {switch}, or run one replica")


RULES: tuple[Rule, ...] = (
    *scheduler_text.RULES,
    Rule("scheduler-plugins-agree", Severity.ERROR, scheduler_plugins_agree),
    Rule("scheduler-action-is-present", Severity.WARNING, scheduler_action_is_present, partly_needs=(Fact.SCHEDULER,)),
    Rule("scheduler-tiers-are-ordered", Severity.WARNING, scheduler_tiers_are_ordered),
    Rule("gang-allows-preemption", Severity.WARNING, gang_allows_preemption),
    Rule("one-scheduler-leads", Severity.ERROR, one_scheduler_leads),
)
