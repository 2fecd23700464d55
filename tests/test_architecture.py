"""Who may import whom, who may touch the world, and how long things may be."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in ("basalt", "modules")
    for path in sorted((ROOT / folder).rglob("*.py"))
}

# A module imports only modules of lower rows, or of its own row. The rows are the data's way through the compiler.
ROWS = (
    (
        "basalt", "basalt.pointers", "basalt.findings", "basalt.facts", "basalt.quantities", "basalt.names",
        "basalt.patterns",
    ),
    ("basalt.loading",),
    ("basalt.formatting",),
    (
        "basalt.api.structural", "basalt.api.schemas", "basalt.api.versions", "basalt.api.cel",
        "basalt.api.guardrail_schemas", "basalt.api.charts",
    ),
    ("basalt.gathering.documents",),
    ("basalt.objects", "basalt.platform"),
    ("basalt.rendering.yaml_writer", "basalt.views.domains"),
    ("modules",),
    ("basalt.api",),
    ("basalt.gathering",),
    ("basalt.views",),
    ("basalt.index",),
    ("basalt.cluster.comparing", "basalt.fit"),
    ("basalt.plan",),
    ("basalt.rules", "basalt.guardrails", "basalt.waivers"),
    ("basalt.deriving", "basalt.own_modules"),
    ("basalt.judging", "basalt.remembering"),
    ("basalt.compiling", "basalt.reporting.json_format"),
    ("basalt.plan.comparing",),
    (
        "basalt.rendering", "basalt.tree", "basalt.occupancy", "basalt.proposing",
    ),
    ("basalt.importing",),
    ("basalt.reporting",),
    ("basalt.explaining",),
    ("basalt.cluster",),
    ("basalt.sandbox",),
    ("basalt.commands.printing",),
    ("basalt.commands.reading",),
    ("basalt.commands",),
    ("basalt.cli",),
    ("basalt.start", "basalt.changes"),
    ("basalt.__main__",),
)  # fmt: skip

# The rim: the only places that read or write files, or look at their surroundings.
RIM = {
    "basalt.fit.pod_by_pod",  # its draws, from fixed seeds
    "basalt.loading.files",
    "basalt.loading.memory",
    "basalt.loading.replacing",
    "basalt.loading.sources",
    "basalt.loading.stamps",
    "basalt.gathering.folders",
    "basalt.gathering.revisions",
    "basalt.rendering.switch",
    "basalt.cluster.applying",
    "basalt.cluster.connection",
    "basalt.sandbox.certificates",  # their dates
    "basalt.sandbox.control_plane",
    "basalt.sandbox.go_programs",
    "basalt.sandbox.processes",
    "basalt.sandbox.programs",
    "basalt.sandbox.sandboxes",
    *(name for name in SOURCES if name.startswith("basalt.commands")),
    "basalt.cli",
    "basalt.changes",
}
DATA = {
    "basalt.views.chart_catalogue",
    "basalt.api.charts",
    "basalt.api.schemas",
    "basalt.api.kinds",
    "basalt.api.versions",
    "basalt.rules.rule",
}  # read their own data files
WORLD = {"open", "print", "input"}
WORLD_MODULES = {"subprocess", "socket", "tempfile", "shutil", "urllib.request", "http", "time", "random", "datetime"}

# Families in several files.
_FAMILIES = tuple(
    {f"basalt.rules.{part}" for part in parts}
    for parts in (
        ("topology", "tiers", "hyper_nodes", "placement"),
        ("jobs", "job_tasks", "job_policies", "job_plugins", "job_names", "job_volumes", "flows"),
        ("scheduler", "scheduler_text"),
        ("job_pods", "job_containers", "verdicts"),
        ("tenancy", "tenant_jobs"),
        ("accelerators", "gpu_operator"),
        ("identity", "login_chain"),
        ("metrics", "metric_chain"),
        ("delivery", "order"),
    )
)


def row(module: str) -> int:
    """The row of the longest name that the module is, or lies in."""
    found = [(len(name), number) for number, names in enumerate(ROWS) for name in names
             if module == name or (module.startswith(f"{name}.") and name != "basalt")]  # fmt: skip
    assert found, f"{module} has no row: add it to ROWS"
    return max(found)[1]


def imports(path: Path) -> Iterator[str]:
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
            yield from (name if name in SOURCES else statement.module for name in names)


@pytest.mark.parametrize("module", SOURCES)
def test_module_imports_only_what_stands_before_it(module: str) -> None:
    own = [name for name in imports(SOURCES[module]) if name.split(".")[0] in ("basalt", "modules")]

    later = sorted({name for name in own if row(name) > row(module)})

    assert later == [], f"{module} (row {row(module)}) imports what comes after it"


@pytest.mark.parametrize("module", [name for name in SOURCES if name.startswith("modules.")])
def test_modules_of_the_platform_do_not_know_each_other(module: str) -> None:
    own = ".".join(module.split(".")[:2])  # a module may be a package of several files

    others = [name for name in imports(SOURCES[module]) if name.startswith("modules")]
    assert [name for name in others if name != own and not name.startswith(f"{own}.")] == []


@pytest.mark.parametrize("module", [name for name in SOURCES if name.startswith("basalt.rules.")])
def test_rule_families_do_not_know_each_other(module: str) -> None:
    others = {name for name in imports(SOURCES[module]) if name.startswith("basalt.rules.")}
    parts = next((family for family in _FAMILIES if module in family), set())

    known = {"basalt.rules.rule", "basalt.rules.bounds"} | parts
    assert others <= known, "what two families need is a view, in basalt/views; files of one family stand in _FAMILIES"


@pytest.mark.parametrize("module", SOURCES)
def test_nothing_imports_pulumi(module: str) -> None:
    assert [name for name in imports(SOURCES[module]) if name.startswith("pulumi")] == []


OF_PULUMI = [ROOT / "__main__.py", *sorted((ROOT / "pulumi_basalt").glob("*.py"))]


@pytest.mark.parametrize("path", OF_PULUMI, ids=lambda path: path.name)
def test_what_speaks_to_pulumi_leaves_files_and_processes_to_the_compiler(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]

    assert sorted(names & WORLD) == []
    assert sorted(set(imports(path)) & WORLD_MODULES) == []
    assert [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= 45] == []
    assert path.name == "arguments.py" or path.read_text(encoding="utf-8").count("\n") <= 400  # it is generated


@pytest.mark.parametrize("module", sorted(SOURCES.keys() - RIM))
def test_only_the_rim_touches_the_world(module: str) -> None:
    tree = ast.parse(SOURCES[module].read_text(encoding="utf-8"))
    names = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    environment = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "environ"]
    reads = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {"read_text", "read_bytes"}

    assert sorted(names & WORLD) == []
    assert environment == []
    assert sorted(set(imports(SOURCES[module])) & WORLD_MODULES) == []
    assert not reads or module in DATA


@pytest.mark.parametrize("module", SOURCES)
def test_files_and_functions_can_be_read_at_a_sitting(module: str) -> None:
    text = SOURCES[module].read_text(encoding="utf-8")
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]

    assert [node.name for node in functions if (node.end_lineno or 0) - node.lineno >= 45] == [], "45 lines or more"
    assert text.count("\n") <= 400, (
        "part it: a family of rules, say, may be in several files, as basalt/rules/jobs.py is"
    )


def test_every_package_is_in_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    sources = [path for folder in ("basalt", "modules", "pulumi_basalt") for path in (ROOT / folder).rglob("*.py")]
    there = {".".join(path.parent.relative_to(ROOT).parts) for path in sources}

    assert there - set(project["tool"]["setuptools"]["packages"]) == set()
