"""YAML text to values, and to the position of each value. Iterative over libyaml's events, so that no depth of
nesting reaches a recursive parser; hostile input ends in a Fault.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from basalt.loading import marks, scalars, yaml_faults
from basalt.loading.limits import ALIAS_NODES, DEPTH, ONE_KEY, Fault
from basalt.loading.marks import Mark
from basalt.pointers import Pointer

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = ("!", f"{_TAG}str")
_SCALAR_TAGS: dict[str, Callable[[str], Any]] = {
    f"{_TAG}int": scalars.as_integer,
    f"{_TAG}float": scalars.as_float,
    f"{_TAG}bool": scalars.as_boolean,
    f"{_TAG}null": scalars.as_null,
}
_KEYS_ARE_TEXTS = "keys are texts; {{ }} is a template's, to be rendered first (helm template)"
_CONTAINER_TAGS: dict[type, tuple[str | None, ...]] = {dict: (None, "!", f"{_TAG}map"), list: (None, "!", f"{_TAG}seq")}


class Ambiguous(NamedTuple):
    """An unquoted scalar that readers differ on; the pointer is to its value and only known with positions."""

    mark: Mark
    text: str
    pointer: Pointer
    is_key: bool


class Parsed(NamedTuple):
    """One document of a text: its value, where it starts, and where each value in it stands when asked for."""

    value: Any
    mark: Mark
    positions: dict[Pointer, Mark] | None
    faults: tuple[Fault, ...]
    ambiguous: tuple[Ambiguous, ...]


def documents(text: str, *, with_positions: bool = False) -> Iterator[Parsed]:
    """Each document of the text that has content; raises Fault where the text is not YAML or beyond a limit."""
    loader = yaml.CSafeLoader(text)  # libyaml's events; nothing of PyYAML's constructors is used
    mark = marks.of_yaml(text)
    builder: _Builder | None = None
    try:
        while not isinstance(event := loader.get_event(), yaml.StreamEndEvent):
            if isinstance(event, yaml.DocumentStartEvent):
                builder = _Builder(loader, mark, with_positions)
                parsed = builder.document()
                if parsed.value is not None:
                    yield parsed
    except yaml.MarkedYAMLError as error:
        opened = builder.stack[-1].opened if builder and builder.stack else None
        raise yaml_faults.of_marked(error, text, mark, opened) from None
    except yaml.reader.ReaderError as error:
        raise yaml_faults.of_character(error, text) from None
    except (ValueError, UnicodeError, yaml.YAMLError) as error:
        raise Fault("document-parses", Mark(1, 1), f"not YAML: {error}") from None
    finally:
        loader.dispose()


class _Frame:
    """A mapping or sequence that is still open."""

    __slots__ = (
        "anchor",
        "container",
        "counted",
        "has_key",
        "is_merge",
        "key",
        "key_mark",
        "key_marks",
        "merges",
        "opened",
    )

    def __init__(self, container: Any, event: Any, counted: int) -> None:
        self.container = container
        self.anchor: str | None = event.anchor
        self.opened = event.start_mark if event.flow_style else None  # libyaml's mark of the bracket
        self.counted = counted  # nodes before this one, aliases expanded
        self.key: str = ""
        self.has_key = False
        self.is_merge = False  # the key is YAML's << and not a text that reads so
        # libyaml's marks, which few are asked for: of the last key, and where each key stands first
        self.key_mark: Any = None
        self.key_marks: dict[str, Any] = {}
        self.merges: list[Any] = []


class _Builder:
    """Builds one document from the events up to its end."""

    def __init__(self, loader: Any, mark: Callable[[Any], Mark], with_positions: bool) -> None:
        self.loader = loader
        self.mark_of = mark
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.open_anchors: set[str] = set()
        self.counted = 0
        self.aliased = 0
        self.faults: list[Fault] = []
        self.ambiguous: list[Ambiguous] = []
        self.positions: dict[Pointer, Mark] | None = {} if with_positions else None
        self.pointer: list[str | int] = []
        self.value: Any = None
        self.start: Mark | None = None

    def document(self) -> Parsed:
        get_event = self.loader.get_event
        handlers = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._open_mapping,
            yaml.SequenceStartEvent: self._open_sequence,
            yaml.MappingEndEvent: self._close,
            yaml.SequenceEndEvent: self._close,
            yaml.AliasEvent: self._alias,
        }
        while (kind := type(event := get_event())) is not yaml.DocumentEndEvent:
            handlers[kind](event)
        start = self.start or Mark(1, 1)
        return Parsed(self.value, start, self.positions, tuple(self.faults), tuple(self.ambiguous))

    def _scalar(self, event: Any) -> None:
        frame = self.stack[-1] if self.stack else None
        tag = event.tag
        if tag is not None and tag not in _TEXT_TAGS and tag not in _SCALAR_TAGS:
            self._refuse_tag(event)
        if frame is not None and not frame.has_key and type(frame.container) is dict:
            self._key(frame, event, event.value)
            return
        value: Any = event.value
        if tag is None:
            if not event.style:
                value, differs = scalars.resolve(value)
                if differs:
                    self.ambiguous.append(Ambiguous(self._mark(event), value, self._here(), is_key=False))
        elif tag in _SCALAR_TAGS:
            value = self._tagged(event)
        self.counted += 1
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, 1)
        self._put(value, event)

    def _tagged(self, event: Any) -> Any:
        """The value of a scalar whose type is written before it: !!int 010."""
        value = _SCALAR_TAGS[event.tag](event.value)
        if value is None and not event.tag.endswith("null"):
            message = f"the tag !!{event.tag.removeprefix(_TAG)} stands before a text that is none"
            raise Fault("document-parses", self._mark(event), message, "take the tag out")
        return value

    def _key(self, frame: _Frame, event: Any, text: str) -> None:
        if text in frame.key_marks:
            self._repeated(frame, event, text)
        elif not event.style and text != "=" and scalars.resolve(text)[1]:
            self.ambiguous.append(Ambiguous(self._mark(event), text, self._here(text), is_key=True))
        if event.anchor is not None:
            self.anchors[event.anchor] = (text, 1)
        frame.key = text
        frame.has_key = True
        frame.is_merge = text == "<<" and not event.style
        frame.key_mark = event.start_mark
        frame.key_marks.setdefault(text, frame.key_mark)

    def _repeated(self, frame: _Frame, event: Any, text: str) -> None:
        first = self.mark_of(frame.key_marks[text])
        message = f"the key {text} stands here and on line {first.line}"
        self.faults.append(Fault("keys-are-unique", self._mark(event), message, ONE_KEY, self._here(text)))

    def _here(self, key: str | None = None) -> Pointer:
        """The pointer of the value that comes next; empty unless positions are kept."""
        if not self.pointer:
            return ()
        frame = self.stack[-1]
        last = (key or frame.key) if type(frame.container) is dict else len(frame.container)
        return (*self.pointer[:-1], last)

    def _open_mapping(self, event: Any) -> None:
        self._open(event, {})

    def _open_sequence(self, event: Any) -> None:
        self._open(event, [])

    def _open(self, event: Any, container: Any) -> None:
        if event.tag not in _CONTAINER_TAGS[type(container)]:
            self._refuse_tag(event)
        if self.stack and type(self.stack[-1].container) is dict and not self.stack[-1].has_key:
            raise Fault("document-parses", self._mark(event), "a key that is itself a map or a list", _KEYS_ARE_TEXTS)
        if len(self.stack) >= DEPTH:
            message = f"nested deeper than {DEPTH} levels"
            raise Fault("input-within-limits", self._mark(event), message, "flatten the text")
        self.counted += 1
        self._put(container, event)
        frame = _Frame(container, event, self.counted)
        if event.anchor is not None:
            self.open_anchors.add(event.anchor)
        self.stack.append(frame)
        if self.positions is not None:
            self.pointer.append("" if type(container) is dict else -1)

    def _close(self, _: Any) -> None:
        frame = self.stack.pop()
        if self.positions is not None:
            self.pointer.pop()
        if frame.merges:
            self._merge(frame)
        if frame.anchor is not None:
            self.open_anchors.discard(frame.anchor)
            self.anchors[frame.anchor] = (frame.container, self.counted - frame.counted + 1)

    def _alias(self, event: Any) -> None:
        if event.anchor in self.open_anchors:
            raise Fault("document-parses", self._mark(event), f"the alias *{event.anchor} contains itself")
        if event.anchor not in self.anchors:
            raise Fault("document-parses", self._mark(event), f"no anchor &{event.anchor} stands before this alias")
        value, size = self.anchors[event.anchor]
        self.counted += size
        self.aliased += size
        if self.aliased > ALIAS_NODES:
            message = f"aliases expand to more than {ALIAS_NODES:,} nodes"
            raise Fault("input-within-limits", self._mark(event), message, "write the repeated part once, in `extends`")
        if self.stack and type(self.stack[-1].container) is dict and not self.stack[-1].has_key:
            raise Fault("document-parses", self._mark(event), "an alias as a key", "write the key out")
        self._put(value, event)

    def _put(self, value: Any, event: Any) -> None:
        """Adds a value to the innermost open container, or makes it the document."""
        if not self.stack:
            self.value = value
            self.start = self._mark(event)
            if self.positions is not None:
                self.positions[()] = self.start
            return
        frame = self.stack[-1]
        if type(frame.container) is dict:
            self._put_under_key(frame, value)
        else:
            frame.container.append(value)
            if self.positions is not None:
                self.pointer[-1] = len(frame.container) - 1
                self.positions[tuple(self.pointer)] = self._mark(event)

    def _put_under_key(self, frame: _Frame, value: Any) -> None:
        frame.has_key = False
        if frame.is_merge:
            frame.merges.append(value)
            return
        frame.container[frame.key] = value
        if self.positions is not None:
            self.pointer[-1] = frame.key
            self.positions[tuple(self.pointer)] = self.mark_of(frame.key_mark)

    def _merge(self, frame: _Frame) -> None:
        """YAML's merge key: what the map says itself wins, then the first of the merged maps."""
        for merged in frame.merges:
            for source in merged if isinstance(merged, list) else [merged]:
                if not isinstance(source, dict):
                    at = self.mark_of(frame.key_marks["<<"])
                    raise Fault("document-parses", at, "<< merges something that is not a map")
                for key, value in source.items():
                    frame.container.setdefault(key, value)

    def _refuse_tag(self, event: Any) -> None:
        shown = event.tag.replace(_TAG, "!!")
        message = f"the tag {shown} asks the reader to build an object"
        raise Fault("document-parses", self._mark(event), message, "write plain maps, lists and scalars")

    def _mark(self, event: Any) -> Mark:
        return self.mark_of(event.start_mark)
