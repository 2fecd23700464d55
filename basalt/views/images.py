"""What a container runs, by the name of its image."""

from typing import Any


def program(image: Any) -> str:
    """An image's name without registry, path, tag and digest: vc-scheduler of docker.io/volcanosh/vc-scheduler:v1.15.1.

    Empty where the image is no text.
    """
    return image.partition("@")[0].rpartition("/")[2].partition(":")[0] if isinstance(image, str) else ""
