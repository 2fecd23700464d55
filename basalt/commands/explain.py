"""`basalt explain`: a rule, an object or a field of it, or a group of the identity provider."""

import argparse
import os

from basalt import names
from basalt.commands.printing import print_findings, write
from basalt.compiling import compile_folder
from basalt.explaining import groups, origins
from basalt.gathering.folders import folder_of
from basalt.loading.sources import Misuse
from basalt.reporting import json_format
from basalt.rules import FAMILIES, RULES

Options = argparse.Namespace


def explain(options: Options) -> int:
    subject: list[str] = options.subject
    if len(subject) > 3:
        raise Misuse("explain takes RULE, or ENV KIND/[NAMESPACE/]NAME [POINTER]")
    if len(subject) == 1:
        return _explain_rule(subject[0], options)
    compilation = compile_folder(folder_of(subject[0]), needs_environment=True, runs_modules=options.modules)
    if not compilation.has_environment:
        print_findings(compilation, options, to_stderr=True)
        return 1
    if groups.is_group(subject[1]) and len(subject) == 2:
        access = groups.explain(compilation.index, subject[1])
        write(json_format.text(access.as_json()) if options.format == "json" else groups.text(access))
        return 0
    found = origins.explain(compilation.index, *subject[1:])
    write(json_format.text(found.as_json()) if options.format == "json" else origins.text(found))
    return 0


def _explain_rule(name: str, options: Options) -> int:
    if name not in RULES:
        hint = names.did_you_mean(name, RULES, most=0, otherwise="see docs/rules")
        if "/" in name or os.path.exists(name):
            hint = "to explain an object: basalt explain ENV KIND/[NAMESPACE/]NAME"
        raise Misuse(f"no rule {name}; {hint}")
    rule = RULES[name]
    family = next(family for family, rules in FAMILIES.items() if rule in rules)
    if options.format == "json":
        page = {"rule": name, "severity": rule.severity.value, "family": family, "page": rule.page}
        write(json_format.text(page))
    else:
        write(f"{rule.page.rstrip()}\n\n({rule.severity.value}, family {family})\n")
    return 0
