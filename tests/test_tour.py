"""The tour shows what its commands print."""

from pathlib import Path

from tools.docs import tour


def test_every_output_of_the_tour_is_that_of_its_command(tmp_path: Path) -> None:
    assert tour.FILE.read_text(encoding="utf-8") == tour.text(tmp_path), "run `make docs`"


def test_the_tour_has_its_picture() -> None:
    assert tour.PICTURE.read_bytes().startswith(b"\x89PNG")
