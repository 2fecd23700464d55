"""basalt/names.py at and beyond the limits of k8s.io/apimachinery/pkg/util/validation."""

import pytest

from basalt import names

LONG = "a" * 63
LABELS = ["a", "0", "a-b", "a--b", "1a", LONG]
NOT_LABELS = ["", "-a", "a-", "A", "a_b", "a.b", "a b", "a\n", "\na", "ä", "\uff11", "a" * 64, "a/b", " "]
SUBDOMAINS = [*LABELS, "a.b", "a.1", "0.a", ".".join([LONG, LONG, LONG, "a" * 61]), "a" * 253]
NOT_SUBDOMAINS = ["", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "A.b", "a_b", "a.b\n", "é.com", "a" * 254]
QUALIFIED = ["a", "A", "a.b", "a_b", "a-b", "A1", LONG, "example.com/a", f"{'a' * 253}/{LONG}", "nvidia.com/gpu"]
NOT_QUALIFIED = [
    "", "/", "a/", "/a", "a/b/c", "-a", "a-", ".a", "a_", "a b", "a\n", "é", "a" * 64, "Example.com/a",
    "a_b/c", "a\n/b",
    f"{'a' * 254}/a", f"a/{'a' * 64}",
]  # fmt: skip
VALUES = ["", "a", "A", "a.b_c-d", "1", LONG]
NOT_VALUES = ["-", "a-", ".a", "a b", "a/b", "a\n", "é", "a" * 64]


@pytest.mark.parametrize("name", LABELS)
def test_label_is_accepted(name: str) -> None:
    assert names.label_fault(name) is None


@pytest.mark.parametrize("name", NOT_LABELS)
def test_label_is_refused(name: str) -> None:
    assert names.label_fault(name)


@pytest.mark.parametrize("name", ["a", "a1", "a-b", LONG])
def test_label_of_a_service_begins_with_a_letter(name: str) -> None:
    assert names.label_1035_fault(name) is None


def test_label_of_a_service_may_not_begin_with_a_digit() -> None:
    assert names.label_1035_fault("1a") == "starts with a letter"
    assert names.label_1035_fault("a" * 64) == "has 64 characters, 63 are allowed"


@pytest.mark.parametrize("name", SUBDOMAINS)
def test_subdomain_is_accepted(name: str) -> None:
    assert names.subdomain_fault(name) is None


@pytest.mark.parametrize("name", NOT_SUBDOMAINS)
def test_subdomain_is_refused(name: str) -> None:
    assert names.subdomain_fault(name)


@pytest.mark.parametrize("key", QUALIFIED)
def test_qualified_name_is_accepted(key: str) -> None:
    assert names.qualified_fault(key) is None


@pytest.mark.parametrize("key", NOT_QUALIFIED)
def test_qualified_name_is_refused(key: str) -> None:
    assert names.qualified_fault(key)


@pytest.mark.parametrize("value", VALUES)
def test_label_value_is_accepted(value: str) -> None:
    assert names.label_value_fault(value) is None


@pytest.mark.parametrize("value", NOT_VALUES)
def test_label_value_is_refused(value: str) -> None:
    assert names.label_value_fault(value)


@pytest.mark.parametrize("name", ["a", "system:node", "A B", "...", "ü"])
def test_path_segment_is_accepted(name: str) -> None:
    assert names.path_segment_fault(name) is None


@pytest.mark.parametrize("name", [".", "..", "a/b", "a%b"])
def test_path_segment_is_refused(name: str) -> None:
    assert names.path_segment_fault(name)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (names.label_fault("a" * 64), "has 64 characters, 63 are allowed"),
        (names.label_fault("A"), "takes lower-case letters, digits and '-', with a letter or digit at both ends"),
        (names.subdomain_fault("a" * 254), "has 254 characters, 253 are allowed"),
        (names.qualified_fault("A_B/c"), f"its prefix {names.subdomain_fault('A_B')}"),
        (names.qualified_fault(f"a/{'b' * 64}"), "its name has 64 characters, 63 are allowed"),
    ],
)
def test_fault_says_what_is_allowed(fault: str | None, expected: str) -> None:
    assert fault == expected


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("visoin", ["vision", "speech"], "did you mean vision?"),
        ("VISION", ["vision"], "did you mean vision?"),
        ("hpc", ["vision", "speech"], "known: speech, vision"),
        ("hpc", [], "otherwise"),
        ("hpc", [f"queue-{number}" for number in range(13)], "otherwise"),
    ],
)
def test_hint_is_the_nearest_name_or_the_list_or_the_words(name: str, known: list[str], hint: str) -> None:
    assert names.did_you_mean(name, known, otherwise="otherwise") == hint


def test_long_list_is_cut_with_a_count() -> None:
    assert names.listed("abcdef") == "a, b, c, d, e, f"
    assert names.listed("abcdefgh") == "a, b, c, d, e, f and 2 more"
    assert names.listed("abc", 2) == "a, b and 1 more"
