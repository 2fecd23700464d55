"""The Pulumi program of an environment: compile it, stop with what is wrong, or register what came out."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi

from basalt.compiling import Compilation, compile_folder
from basalt.findings import Severity, fails
from basalt.gathering.documents import Document
from basalt.gathering.folders import folder_of
from basalt.loading.sources import Misuse, SourceFile
from basalt.objects import MANAGED_BY, KubeObject
from basalt.rendering import layout
from basalt.rendering.needs import in_order
from basalt.reporting import text
from pulumi_basalt import registering, settings
from pulumi_basalt.registering import Contents, Module, Registry

SECRETS = "secrets"  # the component of Secrets whose content the stack's configuration has


def main() -> None:
    """What `pulumi preview` and `pulumi up` run for the selected stack."""
    chosen = settings.read()
    compilation = compiled(chosen.environment)
    components = register(compilation, chosen.provider, secrets=chosen.secrets)
    pulumi.export("environment", compilation.name)
    pulumi.export("objects", layout.counts(layout.in_apply_order(compilation.objects)))
    pulumi.export("modules", sorted(components))


def compiled(environment: str) -> Compilation:
    """The environment of that name or folder; RunError where there is none."""
    try:
        # The project's code runs already, as this program.
        return compile_folder(Path(folder_of(environment)), needs_environment=True, runs_modules=True)
    except Misuse as misuse:
        raise pulumi.RunError(f"{misuse}; the stack's name, or basalt:environment, says which to compile") from None


def register(
    compilation: Compilation,
    provider_options: Mapping[str, Any] | None = None,
    *,
    secrets: Contents | None = None,
) -> dict[str, Module]:
    """Registers everything that the environment compiles to; the components, by module. RunError with the findings,
    and nothing registered, where one is an error. provider_options are arguments of pulumi_kubernetes.Provider: the
    way to the cluster, or render_yaml_to_directory."""
    _stop(compilation)
    given = provider_options or {}
    is_rendering = "render_yaml_to_directory" in given
    contents = {} if is_rendering else dict(secrets or {})
    objects = [*compilation.objects, *_declared(contents, compilation.objects)]
    placed = in_order(_renderable(objects) if is_rendering else objects)
    _tell(compilation)
    provider = registering.provider("kubernetes", given, identifier=compilation.name)
    components = {
        title: Module(title) for title in dict.fromkeys(registering.module_of(each.object) for each in placed)
    }
    registry = Registry(provider, is_rendering=is_rendering, contents=contents)
    secret = registering.secret_objects(compilation)
    resources = registry.add(placed, lambda each: components[registering.module_of(each)], secret=secret)
    for component in components.values():
        component.register_outputs({})
    registering.without_collector(resources)
    return components


def _declared(contents: Contents, objects: Iterable[KubeObject]) -> Iterator[KubeObject]:
    """The Secrets whose content the stack has, and nobody declares."""
    known = {each.ref[2:] for each in objects if registering.is_secret_object(each)}
    for namespace, name in contents:
        if (namespace, name) not in known:
            metadata = {"name": name, "namespace": namespace, "labels": MANAGED_BY}
            value = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
            file = SourceFile(Path("basalt:secrets"), "basalt:secrets", b"")
            yield KubeObject(value, Document(file, 0, value), module=SECRETS)


def _renderable(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """The objects that the provider can write as YAML. It names files by apiVersion, kind, namespace and name joined
    with hyphens, so that two objects may be given one file: RunError then."""
    every = list(objects)
    files: dict[str, KubeObject] = {}
    for each in layout.in_apply_order(every):
        file = "-".join((each.ref.api_version, each.ref.kind, each.ref.namespace or "default", each.name)).lower()
        if file in files:
            both = f"{files[file].ref} and {each.ref}"
            raise pulumi.RunError(f"{both} would be rendered to one file; rename one, or use `basalt compile`")
        files[file] = each
    if charts := [each.name for each in every if layout.is_release(each)]:
        engines = "let delivery.engine be argocd or flux"
        pulumi.log.warn(f"not rendered, because only a cluster takes a Helm release: {', '.join(charts)}; {engines}")
    return [each for each in every if not layout.is_release(each)]


def _stop(compilation: Compilation) -> None:
    if fails(compilation.findings, strict=False):
        raise pulumi.RunError(f"{compilation.name} has errors, nothing is registered\n{rendered(compilation)}")


def rendered(compilation: Compilation) -> str:
    """The findings as `basalt check` shows them."""
    files = {file.name: file for file in compilation.files}

    def line(name: str, number: int) -> str:
        return files[name].line(number) if name in files else ""

    return text.report(compilation.findings, compilation.skipped, line, text.Paint(is_on=False))


def _tell(compilation: Compilation) -> None:
    """Shows warnings, and what is left out, beside the preview."""
    for each in compilation.findings:
        if each.severity is Severity.WARNING and not each.waived:
            hint = f"; hint: {each.hint}" if each.hint else ""
            pulumi.log.warn(f"{each.source}: {text.said(each)} [{each.rule}]{hint}")
    if withheld := [str(each.ref) for each in compilation.objects if layout.is_withheld(each)]:
        way_out = "take the values out, and give them as basalt:secrets of the stack"
        pulumi.log.warn(f"not registered, because it holds secret values: {', '.join(withheld)}; {way_out}")
    files = [each for each in compilation.objects if layout.is_file(each) and not layout.is_release(each)]
    if files:
        kinds = ", ".join(sorted({each.ref.kind for each in files}))
        pulumi.log.info(f"not registered, because no cluster takes what has no name: {kinds}")
