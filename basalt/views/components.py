"""Circles in a graph: which names lead back to themselves, and together."""

from collections.abc import Mapping, Sequence


class Components:
    """Tarjan's strongly connected components, iterative; each after all that it leads to."""

    def __init__(self, children: Mapping[str, Sequence[str]]) -> None:
        self.found: list[tuple[str, ...]] = []
        self._rest = {name: iter(below) for name, below in children.items()}
        self._order: dict[str, int] = {}
        self._lowest: dict[str, int] = {}
        self._open: dict[str, None] = {}
        for name in children:
            if name not in self._order:
                self._visit(name)

    def _visit(self, root: str) -> None:
        trail = [root]
        self._enter(root)
        while trail:
            name = trail[-1]
            child = next(self._rest[name], None)
            if child is None:
                trail.pop()
                self._leave(name, *trail[-1:])
            elif child not in self._order:
                trail.append(child)
                self._enter(child)
            elif child in self._open:
                self._lowest[name] = min(self._lowest[name], self._order[child])

    def _enter(self, name: str) -> None:
        self._order[name] = self._lowest[name] = len(self._order)
        self._open[name] = None

    def _leave(self, name: str, *above: str) -> None:
        for parent in above:
            self._lowest[parent] = min(self._lowest[parent], self._lowest[name])
        if self._lowest[name] == self._order[name]:
            taken: list[str] = []
            while not taken or taken[-1] != name:
                taken.append(self._open.popitem()[0])
            self.found.append(tuple(reversed(taken)))
