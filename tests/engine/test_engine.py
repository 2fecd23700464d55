"""`pulumi up` of `seed` by the real engine against a real API server."""

import subprocess
import sys
from pathlib import Path
from shutil import copytree
from typing import Any, NamedTuple

import psutil
import pytest
from pulumi.automation import CommandError, ConfigValue, OpType, Stack, UpResult

from basalt.compiling import compile_folder
from basalt.findings import Ref
from basalt.objects import KubeObject
from basalt.rendering import layout
from pulumi_basalt import program
from tests.engine.stacks import FAST, Engine
from tests.sandbox.conftest import ROOT, Up
from tests.sandbox.test_apply import RESTLESS, merge

pytestmark = pytest.mark.slow
QUOTA = Ref("v1", "ResourceQuota", "speech-train", "quota")
QUEUE = Ref("scheduling.volcano.sh/v1beta1", "Queue", None, "vision")
JOB = Ref("batch.volcano.sh/v1alpha1", "Job", "vision-train", "resnet")
KILLED_AFTER = (1, 20, 50)  # objects


class Deployed(NamedTuple):
    """A stack of seed, whose files can be changed, and the sandbox that it goes to."""

    stack: Stack
    project: Path
    sandbox: Up

    @property
    def objects(self) -> list[KubeObject]:
        return layout.in_apply_order(compile_folder(self.project / "stacks" / "seed").objects)

    @property
    def size(self) -> int:
        """The resources: the objects, their modules, the stack and the provider."""
        return len(self.objects) + len({each.module for each in self.objects}) + 2

    def write(self, file: str, old: str, new: str) -> None:
        path = self.project / "stacks" / "seed" / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")

    def live(self, ref: Ref) -> dict[str, Any]:
        found = self.sandbox.cluster.get(ref)
        assert found is not None, ref
        return found

    def left(self) -> list[Ref]:
        """The objects that are in the cluster."""
        return [each.ref for each in self.objects if self.sandbox.cluster.get(each.ref)]

    def up(self, *, expect_no_changes: bool = False, **more: str) -> UpResult:
        """As `make up` does it."""
        workspace = self.stack.workspace
        before = workspace.env_vars
        workspace.env_vars = {**before, **FAST, **more}
        try:
            return self.stack.up(expect_no_changes=expect_no_changes)
        finally:
            workspace.env_vars = before

    def destroy(self) -> None:
        """Destroys what is protected too."""
        workspace = self.stack.workspace
        unprotect = ["state", "unprotect", "--all", "--yes", "--stack", self.stack.name]
        workspace.pulumi_command.run(unprotect, workspace.work_dir, workspace.env_vars)
        try:
            self.stack.destroy()
        except CommandError as error:
            if "child queues" not in str(error):
                raise
            self.stack.destroy()  # Volcano's webhook had not heard yet that they are gone

    def verify(self) -> subprocess.CompletedProcess[str]:
        """What `basalt verify` says."""
        home = self.sandbox.home._replace(project=self.project)
        return home.run("verify", "seed", KUBECONFIG=self.sandbox.kubeconfig)


def deploy(engine: Engine, sandbox: Up, folder: Path) -> Deployed:
    copytree(ROOT / "stacks" / "seed", folder / "stacks" / "seed")
    stack = engine.stack("seed", folder / "state", program.main, sandbox.kubeconfig)
    chosen = {
        "basalt:environment": str(folder / "stacks" / "seed"),
        "kubernetes:kubeconfig": sandbox.kubeconfig,  # KUBECONFIG may say something else to this process
    }
    stack.set_all_config({key: ConfigValue(value) for key, value in chosen.items()})
    return Deployed(stack, folder, sandbox)


@pytest.fixture(scope="module")
def seed(engine: Engine, empty: Up, tmp_path_factory: pytest.TempPathFactory) -> Deployed:
    """The stack of seed, after its first `up`."""
    deployed = deploy(engine, empty, tmp_path_factory.mktemp("engine"))
    deployed.up()
    return deployed


def test_preview_on_an_empty_cluster_foretells_every_object(engine: Engine, empty: Up, tmp_path: Path) -> None:
    preview = deploy(engine, empty, tmp_path)

    foretold = preview.stack.preview()

    assert foretold.change_summary == {OpType.CREATE: preview.size}
    assert empty.cluster.get(QUEUE) is None


def test_up_brings_every_object_as_it_is_declared(seed: Deployed) -> None:
    verified = seed.verify()

    assert verified.returncode == 0, verified.stdout


def test_second_up_changes_nothing(seed: Deployed) -> None:
    before = versions(seed)

    again = seed.up(expect_no_changes=True)

    assert again.summary.resource_changes == {"same": seed.size}
    assert versions(seed) == before


def versions(deployed: Deployed) -> dict[Ref, str]:
    """The resource versions of what no controller changes."""
    kept = [each.ref for each in deployed.objects if each.ref.kind not in RESTLESS]
    return {ref: deployed.live(ref)["metadata"]["resourceVersion"] for ref in kept}


def test_changed_object_is_updated_in_place(seed: Deployed) -> None:
    before = seed.live(QUOTA)
    seed.write("teams.yaml", "pods: 300", "pods: 280")

    foretold = seed.stack.preview()
    done = seed.up()

    assert foretold.change_summary == {OpType.SAME: seed.size - 1, OpType.UPDATE: 1}
    assert done.summary.resource_changes == {"same": seed.size - 1, "update": 1}
    assert seed.live(QUOTA)["metadata"]["uid"] == before["metadata"]["uid"]
    assert {before["spec"]["hard"]["pods"], seed.live(QUOTA)["spec"]["hard"]["pods"]} == {"300", "280"}


def test_job_that_cannot_be_changed_is_replaced(seed: Deployed) -> None:
    uid = seed.live(JOB)["metadata"]["uid"]
    seed.write("jobs.yaml", "resnet:1.4.2", "resnet:1.4.3")

    foretold = seed.stack.preview()
    done = seed.up()

    assert foretold.change_summary == {OpType.SAME: seed.size - 1, OpType.REPLACE: 1}
    assert done.summary.resource_changes == {"same": seed.size - 1, "replace": 1}
    assert seed.live(JOB)["metadata"]["uid"] != uid
    images = {each["template"]["spec"]["containers"][0]["image"] for each in seed.live(JOB)["spec"]["tasks"]}
    assert images == {"registry.example.com/vision/resnet:1.4.3"}


def test_change_by_hand_is_seen_and_taken_back_only_when_told(seed: Deployed) -> None:
    merge(seed.sandbox, QUEUE, "queues", {"spec": {"weight": 7}})

    seen = seed.stack.refresh()

    assert seen.summary.resource_changes == {"same": seed.size - 1, "update": 1}
    with pytest.raises(CommandError, match='conflict with "somebody"'):
        seed.up()
    seed.up(PULUMI_K8S_ENABLE_PATCH_FORCE="true")
    assert seed.live(QUEUE)["spec"]["weight"] == 1


def test_destroy_leaves_only_what_holds_data(seed: Deployed) -> None:
    with pytest.raises(CommandError, match="protected"):
        seed.stack.destroy()

    seed.destroy()

    assert {each.kind for each in seed.left()} == {"Namespace"}


def test_a_killed_up_is_repaired_by_the_next(engine: Engine, empty: Up, tmp_path: Path) -> None:
    deployed = deploy(engine, empty, tmp_path)
    for count in KILLED_AFTER:
        kill_after(count, engine, deployed)
        assert not (deployed.stack.export_stack().deployment or {}).get("resources")  # nothing of it is known
        deployed.stack.cancel()

    deployed.up()

    verified = deployed.verify()
    assert verified.returncode == 0, verified.stdout
    deployed.up(expect_no_changes=True)
    deployed.write("teams.yaml", "pods: 300", "pods: 280")
    deployed.up()
    assert deployed.live(QUOTA)["spec"]["hard"]["pods"] == "280"


def kill_after(count: int, engine: Engine, deployed: Deployed) -> None:
    """An `up` whose engine is killed when so many objects are there."""
    root = Path(engine.command.command).parents[1]
    arguments = (str(count), root, engine.provider, deployed.stack.workspace.work_dir, deployed.sandbox.kubeconfig)
    command = [sys.executable, "-m", "tests.engine.killed", *map(str, arguments)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    orphans = [psutil.Process(int(pid)) for pid in run.stdout.split() if psutil.pid_exists(int(pid))]
    assert run.stdout.split()
    _, left = psutil.wait_procs(orphans, timeout=30)
    assert left == []
