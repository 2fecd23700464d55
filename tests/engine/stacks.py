"""Stacks of the real engine, driven through the Automation API by programs in this process."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pulumi import automation
from pulumi.automation import PulumiCommand, Stack

Program = Callable[[], None]
# What `make up` sets: the state is written once, at the end, and what a killed run left is taken over.
FAST = {
    "PULUMI_EXPERIMENTAL": "1",
    "PULUMI_SKIP_CHECKPOINTS": "1",
    "PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true",
}


class Engine(NamedTuple):
    """The CLI, and the folder with the provider's plugin."""

    command: PulumiCommand
    provider: Path

    def stack(self, name: str, folder: Path, program: Program, kubeconfig: str, **more: str) -> Stack:
        """A stack whose state is kept in the folder; more: of its environment."""
        folder.mkdir(parents=True, exist_ok=True)
        variables = {
            "PATH": str(self.provider),
            "KUBECONFIG": kubeconfig,
            "PULUMI_BACKEND_URL": folder.as_uri(),
            "PULUMI_CONFIG_PASSPHRASE": "not a secret",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            **more,
        }
        settings = automation.ProjectSettings("basalt", "python")
        options = automation.LocalWorkspaceOptions(
            work_dir=str(folder), pulumi_home=str(folder / "home"), pulumi_command=self.command,
            project_settings=settings, env_vars=variables,
        )  # fmt: skip
        return automation.create_or_select_stack(name, "basalt", program, opts=options)
