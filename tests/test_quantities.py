"""basalt/quantities.py against the table of k8s.io/apimachinery/pkg/api/resource/quantity_test.go."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basalt import quantities
from basalt.quantities import Amount, parse, show, show_rounded

LARGEST = 2**63 - 1
STEADY = settings(deadline=None, derandomize=True)

READ: dict[str, Amount | str] = {
    # without a suffix
    "0": 0, "00": 0, "1": 1, "007": 7, "9223372036854775808": 2**63,
    # binary suffixes, capped at 2^63-1
    "0Ki": 0, "1Ki": 1024, "8Ki": 8 * 1024, "7Mi": 7 * 1024**2, "6Gi": 6 * 1024**3, "5Ti": 5 * 1024**4,
    "4Pi": 4 * 1024**5, "3Ei": 3 * 1024**6, "9Ei": LARGEST, "9223372036854775807Ki": LARGEST, "-9Ei": -LARGEST,
    # decimal suffixes, not capped
    "5n": "5e-9", "4u": "4e-6", "3m": "3e-3", "8k": 8000, "7M": 7 * 10**6, "6G": 6 * 10**9, "5T": 5 * 10**12,
    "2P": 2 * 10**15, "1E": 10**18, "12E": 12 * 10**18,
    # exponents: `E` alone is a suffix, with digits an exponent
    "1e3": 1000, "1E3": 1000, "1E-3": "0.001", "1.3E+6": 1300000, "0.5e0": "0.5", "1.6e15": 16 * 10**14, "1e0": 1,
    # fractions
    "0.5": "0.5", "0.50000": "0.5", "0.0005k": "0.5", "9.01": "9.01", "1.01E": 101 * 10**16, "0.5Mi": 512 * 1024,
    "0.5Gi": 512 * 1024**2, "100.035Ki": "102435.84", "0.05Gi": "53687091.2", "2.5P": 25 * 10**14,
    # without digits on one side of the point
    ".5": "0.5", ".001": "0.001", ".0001k": "0.1", "5.": 5, "1.G": 10**9, ".5Gi": 512 * 1024**2,
    # signs
    "+1": 1, "-1": -1, "+.5": "0.5", "-0.5Gi": -512 * 1024**2, "-0": 0,
    # less than a billionth is rounded away from zero
    "3.001n": "4e-9", "1.1E-9": "2e-9", "0.0000000001": "1e-9", "0.9n": "1e-9", "0.00000012345": "124e-9",
    "0.000000000001Ki": "2e-9", "-0.1n": "-1e-9", "0e-99": 0,
    # hostile, and legal all the same
    "1e30": 10**30, "1" + "0" * 500: 10**500, "0." + "0" * 500 + "1": "1e-9", "1e-999999999999": "1e-9",
}  # fmt: skip

REFUSED = [
    "", " ", " 1", "1 ", "1\n", "1 Gi", ".", "+", "-", "--1", "+-1", "1+", "Gi", "m", "1.1.M", "1+1.0M",
    "0.1mi", "0.1am",
    "aoeu", ".5i", "1i", "1Kib", "1KI", "1ki", "1K", "1g", "1GB", "1e", "1Ee3", "1e+", "1e1.5", "-3.01e-",
    "1e3Ki", "1_000",
    "1,5", "0x10", "1/2", "inf", "nan", "∞", "٣", "\uff11", "1" * 2000, "1e" + "9" * 2000,
]  # fmt: skip


@pytest.mark.parametrize("text", READ, ids=lambda text: repr(text[:20]))
def test_quantity_is_read_as_the_api_server_reads_it(text: str) -> None:
    expected = READ[text]

    found = parse(text)

    assert found == (Fraction(Decimal(expected)) if isinstance(expected, str) else expected)
    assert isinstance(found, int) == (found == int(found or 0)), "a whole number is an int"


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: repr(text[:20]))
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (8, 8), (0, 0), (-1, -1), (0.5, Fraction(1, 2)), (1e22, 10**22), (0.1, Fraction(1, 10)), (2.0, 2),
        (True, None), (None, None), ([], None), ({}, None), (float("nan"), None), (float("inf"), None),
    ],
)  # fmt: skip
def test_numbers_of_yaml_are_read_and_nothing_else_is(value: object, expected: Amount | None) -> None:
    assert parse(value) == expected


def test_number_that_python_would_not_print_is_none() -> None:
    assert parse(16**5000) is None


@pytest.mark.parametrize("text", ["1e999999999999999999", "1e-999999999999999999", "9" * 1000 + "E", "1e1000"], ids=len)
def test_amount_of_a_hostile_quantity_is_bounded_and_shown_without_end(text: str) -> None:
    found = parse(text)

    assert found is not None
    assert len(show(found)) <= 1100
    assert len(show(found, "memory")) <= 1100


@pytest.mark.parametrize(
    ("amount", "resource", "expected"),
    [
        (8, "nvidia.com/gpu", "8"), (1000, "cpu", "1000"), (0, "memory", "0"), (-8, "cpu", "-8"),
        (10**20, "cpu", "1e20"),
        (Fraction(1, 2), "cpu", "500m"), (Fraction(191, 2), "cpu", "95500m"), (Fraction(1, 10**6), "cpu", "1u"),
        (Fraction(3, 10**9), "cpu", "3n"), (Fraction(-1, 2), "cpu", "-500m"), (Fraction(8), "cpu", "8"),
        (1024, "memory", "1Ki"), (1025, "memory", "1025"), (64 * 1024**3, "memory", "64Gi"),
        (8192 * 1024**3, "memory", "8Ti"),
        (3584 * 1024**3, "memory", "3584Gi"), (500 * 10**9, "memory", "500G"), (1000, "memory", "1k"),
        (1024**3, "requests.memory", "1Gi"), (1024**3, "limits.ephemeral-storage", "1Gi"),
        (1024**3, "hugepages-2Mi", "1Gi"),
        (1024**4, "requests.storage", "1Ti"), (1024**3, "cpu", "1073741824"),
    ],
)  # fmt: skip
def test_amount_is_shown_in_the_usual_unit(amount: Amount, resource: str, expected: str) -> None:
    assert show(amount, resource) == expected


@pytest.mark.parametrize(
    ("amount", "down", "up"),
    [
        (8 * 1051325184 * 1024, "7.83Ti", "7.84Ti"), (1051325184 * 1024, "1002.62Gi", "1002.63Gi"),
        (1024**4, "1Ti", "1Ti"),
        (8021 * 1024**3, "8021Gi", "8021Gi"), (1024**4 - 1, "1023.99Gi", "1024Gi"), (1023, "1023", "1023"),
        (0, "0", "0"),
    ],
)  # fmt: skip
def test_sum_over_nodes_is_shown_short_and_on_the_safe_side(amount: int, down: str, up: str) -> None:
    assert (show_rounded(amount, "memory"), show_rounded(amount, "memory", up=True)) == (down, up)


@given(st.integers(-(2**80), 2**80), st.sampled_from(["", "cpu", "memory", "hugepages-2Mi"]))
@STEADY
def test_shown_whole_number_reads_back_as_itself(amount: int, resource: str) -> None:
    assert parse(show(amount, resource)) == amount


@given(st.integers(-(10**30), 10**30), st.sampled_from(["", "cpu", "memory"]))
@STEADY
def test_shown_fraction_reads_back_as_itself(billionths: int, resource: str) -> None:
    amount = Fraction(billionths, 10**9)

    assert parse(show(amount, resource)) == amount


@given(st.integers(0, 2**62), st.sampled_from(["cpu", "memory"]))
@STEADY
def test_rounded_text_is_on_the_safe_side_and_near(amount: int, resource: str) -> None:
    below, above = parse(show_rounded(amount, resource)), parse(show_rounded(amount, resource, up=True))

    assert below is not None
    assert above is not None
    assert below <= amount <= above
    assert above - below <= amount * Fraction(1, 50)


DIGITS = st.from_regex(r"[+-]?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})", fullmatch=True)
SUFFIXES: dict[str, Amount] = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "Ki": 2**10,
    "Mi": 2**20,
    "e3": 10**3,
    "E-2": Fraction(1, 100),
    "m": Fraction(1, 1000),
}


@given(DIGITS, st.sampled_from(sorted(SUFFIXES)))
@STEADY
def test_value_is_the_number_times_its_suffix_up_to_a_billionth(number: str, suffix: str) -> None:
    exact = Fraction(Decimal(number)) * SUFFIXES[suffix]

    found = parse(number + suffix)

    assert found is not None
    assert abs(exact) <= abs(Fraction(found)) < abs(exact) + Fraction(1, 10**9)


@given(st.lists(st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.fractions(max_denominator=1000))))
@STEADY
def test_sum_is_exact_and_does_not_depend_on_the_order(maps: list[dict[str, Fraction]]) -> None:
    total = quantities.add(*maps)

    assert total == quantities.add(*reversed(maps))
    assert total == {name: sum(each.get(name, 0) for each in maps) for each in maps for name in each}


def test_map_keeps_what_is_readable() -> None:
    assert quantities.parse_map({"cpu": "500m", "memory": "4Gx", "nvidia.com/gpu": 8, "pods": None, 1: 2}) == {
        "cpu": Fraction(1, 2), "nvidia.com/gpu": 8, "1": 2,
    }  # fmt: skip
    assert quantities.parse_map(None) == quantities.parse_map([]) == quantities.parse_map("cpu") == {}


def test_fractions_are_written_as_text_and_the_rest_as_it_stands() -> None:
    assert quantities.as_written({"cpu": 0.5, "memory": "4Gi", "pods": 8}) == {"cpu": "0.5", "memory": "4Gi", "pods": 8}


@pytest.mark.parametrize(
    ("resource", "extended"),
    [
        ("nvidia.com/gpu", True), ("rdma/hca", True), ("cpu", False), ("hugepages-2Mi", False),
        ("kubernetes.io/batch-cpu", False), ("requests.nvidia.com/gpu", False),
    ],
)  # fmt: skip
def test_extended_resources_have_a_domain_outside_kubernetes(resource: str, extended: bool) -> None:
    assert quantities.is_extended(resource) == extended


@pytest.mark.parametrize(
    ("key", "own"),
    [
        ("requests.nvidia.com/gpu", True), ("count/jobs.batch.volcano.sh", True), ("nvidia.com/gpu", False),
        ("cpu", False),
        ("gold.storageclass.storage.k8s.io/requests.storage", True), ("limits.nvidia.com/gpu", False),
        ("requests.cpu", False),
        ("gpu.deviceclass.resource.k8s.io/devices", True),
    ],
)  # fmt: skip
def test_keys_that_quotas_alone_use(key: str, own: bool) -> None:
    assert quantities.is_quota_key(key) == own


def test_a_part_of_a_byte_is_shown_as_it_is() -> None:
    amount = parse("0.777777777")

    assert amount is not None
    assert show_rounded(amount, "memory") == show(amount, "memory") == "777777777n"
