"""Which nodes a pod may still take for the sake of the pods that stand already."""

from collections import Counter

from basalt.fit.problem import PLENTY, Gang, Problem, Slot


class Neighbours:
    """Where pods stand that keep others away: from the numbers of Problem.aparts, by place, on either side. Those of
    the last layer are its own."""

    def __init__(self, problem: Problem, *layers: set[tuple[int, bool, str]]) -> None:
        self._problem = problem
        self._layers = layers or (set(),)

    def branch(self) -> "Neighbours":
        """The same, to which some may be added that this one does not see."""
        return Neighbours(self._problem, *self._layers, set())

    def copy(self) -> "Neighbours":
        return Neighbours(self._problem, *self._layers[:-1], set(self._layers[-1]))

    def suffer(self, slot: Slot, node: str) -> int:
        """How many more pods of the slot the node may take for their sake."""
        most = PLENTY
        for number in self._problem.aparts_of.get(slot, ()):
            apart = self._problem.aparts[number]
            if (place := apart.places.get(node)) is None:
                continue
            is_own, is_other = slot == apart.slot, slot in apart.others
            if (is_own and self._has((number, False, place))) or (is_other and self._has((number, True, place))):
                return 0
            if is_own and is_other:
                most = 1
        return most

    def add(self, slot: Slot, node: str) -> None:
        for number in self._problem.aparts_of.get(slot, ()):
            apart = self._problem.aparts[number]
            if (place := apart.places.get(node)) is not None:
                self._layers[-1].add((number, slot == apart.slot, place))

    def _has(self, taken: tuple[int, bool, str]) -> bool:
        return any(taken in layer for layer in self._layers)


class Company:
    """The pods of one gang as the scheduler places them, one after the other, on an empty cluster."""

    def __init__(self, problem: Problem, gang: Gang) -> None:
        self._gang = gang
        self._is_free = problem.is_free(gang)
        self._neighbours = Neighbours(problem)
        self._standing: list[tuple[int, str]] = []

    def add(self, index: int, node: str) -> None:
        if not self._is_free:
            self._neighbours.add((self._gang.key, index), node)
            self._standing.append((index, node))

    def takes(self, index: int, node: str) -> bool:
        """Whether the node may get one more pod of the shape, as far as other pods have a say."""
        if self._is_free:
            return True
        if not self._neighbours.suffer((self._gang.key, index), node):
            return False
        return self._keeps_bonds(index, node) and self._keeps_spreads(index, node)

    def _keeps_bonds(self, index: int, node: str) -> bool:
        for bond in self._gang.bonds:
            if index in bond.shapes:
                there = {other for shape, other in self._standing if shape in bond.shapes} | {node}
                if not any(there <= domain.nodes for domain in bond.domains):
                    return False
        return True

    def _keeps_spreads(self, index: int, node: str) -> bool:
        for spread in self._gang.spreads:
            if index in spread.shapes:
                pods = Counter(other for shape, other in self._standing if shape in spread.shapes)
                sums = {each.name: sum(pods[other] for other in pods if other in each.nodes) for each in spread.domains}
                floor = min(sums.values(), default=0) if spread.is_lifted else 0
                inside = [sums[each.name] for each in spread.domains if node in each.nodes]
                if not inside or inside[0] >= floor + spread.skew:
                    return False
        return True
