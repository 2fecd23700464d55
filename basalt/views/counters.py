"""What the declared DCGM exporters collect: their own list of counters, or the one that somebody gives them.

Sources: pkg/cmd/app.go and internal/pkg/counters of the DCGM exporter; controllers/object_controls.go of the GPU
Operator; values.yaml of both charts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from basalt.gathering import places
from basalt.objects import KubeObject, mapping, sequence, strings
from basalt.pointers import Pointer, get
from basalt.views.exporters import Exporter, Labels, dcgm_list, metrics
from basalt.views.scrapes import Declared

_KEYS = ("dcgm-metrics.csv", "metrics")  # of the GPU Operator, and of the exporter's flag -m
_OWN = ("default-counters.csv", "dcp-metrics-included.csv")
_FILE_FLAGS, _MAP_FLAGS = ("-f", "--collectors"), ("-m", "--configmap-data")
_FILE, _MAP = "DCGM_EXPORTER_COLLECTORS", "DCGM_EXPORTER_CONFIGMAP_DATA"
_POD_LABELS = "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"
_Lists = Mapping[str, str | None]

Collected = dict[str, Labels]


def collected(found: Sequence[Declared], config_maps: Iterable[KubeObject]) -> Collected | None:
    """The metrics of all of them, None where they are not known. Where only a monitor tells of an exporter, those of
    its own list and of every list that is declared."""
    lists = {each.name: _text_of(each) for each in config_maps}
    every = [_of(each, lists) for each in found]
    if not found:
        every = [dict(metrics(Exporter.DCGM)), *(dcgm_list(text) for text in lists.values() if text is not None)]
    if any(each is None for each in every):
        return None
    merged: Collected = {}
    for each in every:
        merged |= each or {}
    return merged


def _text_of(config_map: KubeObject) -> str | None:
    data = mapping(config_map.value.get("data"))
    texts = [data[key] for key in data if isinstance(data[key], str) and _is_list(key, data[key])]
    return "\n".join(texts) if texts else None


def _is_list(key: Any, text: str) -> bool:
    return "DCGM_" in text and (key in _KEYS or str(key).endswith(".csv"))


def _of(each: Declared, lists: _Lists) -> Collected | None:
    if each.values is not None:
        return _of_chart(each.values.value, lists)
    value = get(places.value(each.place), each.pointer)
    ref = each.place.ref
    if ref is not None and ref.group == "nvidia.com":
        return _of_operator(mapping(value) if each.pointer[-1:] == ("dcgmExporter",) else {}, lists)
    return _of_pod(places.value(each.place), each.pointer, lists)


def _of_operator(settings: Mapping[str, Any], lists: _Lists) -> Collected | None:
    config = mapping(settings.get("config"))
    return _with(_of_map(config.get("name"), lists), has_labels=settings.get("enablePodLabels") is True)


def _of_chart(values: Mapping[str, Any], lists: _Lists) -> Collected | None:
    settings = mapping(values.get("dcgmExporter"))
    if settings:
        config = mapping(settings.get("config"))
        if config.get("create") is True and isinstance(config.get("data"), str):
            return _with(dcgm_list(config["data"]), has_labels=settings.get("enablePodLabels") is True)
        return _of_operator(settings, lists)
    if isinstance(values.get("customMetrics"), str):
        return dcgm_list(values["customMetrics"])
    return _of_words(strings(values.get("arguments")), {}, (), lists)


def _of_pod(value: Any, image: Pointer, lists: _Lists) -> Collected | None:
    container = mapping(get(value, image[:-1]))
    spec = mapping(get(value, image[:-3]))
    env = {
        name: text
        for each in map(mapping, sequence(container.get("env")))
        if isinstance(name := each.get("name"), str) and isinstance(text := each.get("value"), str)
    }
    words = [*strings(container.get("command")), *strings(container.get("args"))]
    mounted = [mapping(mapping(each).get("configMap")).get("name") for each in sequence(spec.get("volumes"))]
    found = _of_words(words, env, [name for name in mounted if isinstance(name, str)], lists)
    return _with(found, has_labels=env.get(_POD_LABELS, "").casefold() in ("true", "1"))


def _of_words(words: Sequence[str], env: Mapping[str, str], mounted: Iterable[str], lists: _Lists) -> Collected | None:
    given = dict(_flags(words))
    named = next((given[flag] for flag in _MAP_FLAGS if flag in given), env.get(_MAP, ""))
    if named and named != "none":
        return _of_map(named.rpartition(":")[2], lists)
    path = next((given[flag] for flag in _FILE_FLAGS if flag in given), env.get(_FILE, f"/etc/dcgm-exporter/{_OWN[0]}"))
    texts = [text for name in mounted if (text := lists.get(name)) is not None]
    if texts:
        return dcgm_list("\n".join(texts))
    return dict(metrics(Exporter.DCGM)) if path.rpartition("/")[2] in _OWN and path.startswith("/etc/dcgm") else None


def _flags(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for at, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag.startswith("-"):
            yield flag, value if equals else next(iter(words[at + 1 :]), "")


def _of_map(name: Any, lists: _Lists) -> Collected | None:
    if not isinstance(name, str) or not name:
        return dict(metrics(Exporter.DCGM))
    text = lists.get(name)
    return dcgm_list(text) if text is not None else None


def _with(found: Collected | None, *, has_labels: bool) -> Collected | None:
    return dict.fromkeys(found, None) if found is not None and has_labels else found
