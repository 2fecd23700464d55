"""What the policy pack says after an update, when the engine gives it objects as the API server keeps them."""

import pytest

from basalt.compiling import compile_folder
from policies import judging
from policies.judging import Config
from tests.sandbox.conftest import ROOT, Up
from tests.test_policies import resource

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("environment", ["", "stacks/seed"])
def test_objects_with_every_default_of_the_cluster_are_not_violated(environment: str, seed: Up) -> None:
    found = [seed.cluster.get(each.ref) for each in compile_folder(ROOT / "stacks" / "seed").objects]
    live = [resource(each) for each in found if each is not None]

    assert len(live) == len(found)
    assert judging.judge(live, Config(environment=environment), ROOT) == []
