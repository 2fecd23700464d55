"""`basalt topology`: the tree of domains, and the largest gang that each tier takes."""

import argparse

from basalt import tree
from basalt.commands.printing import exit_code, paint, print_findings, write
from basalt.commands.reading import compiled
from basalt.compiling import Compilation
from basalt.fit import shapes
from basalt.fit.shapes import Fitting
from basalt.quantities import Resources
from basalt.reporting import json_format, shape_text, tree_text

Options = argparse.Namespace


def topology(options: Options) -> int:
    shape = None if options.shape is None else shapes.parse_shape(options.shape)
    compilation = compiled(options)
    drawn = tree.draw(compilation.index)
    fitting = None if shape is None else _fitting(compilation, shape)
    if options.format == "json":
        found = json_format.report(compilation.name, compilation.findings, compilation.skipped)
        shaped = {} if shape is None else {"shape": fitting.as_json() if fitting else None}
        write(json_format.text({**found, **drawn.as_json(), **shaped}))
    elif compilation.has_environment:
        write(tree_text.tree(compilation.name, drawn, paint(options)))
        if fitting is not None:
            write(shape_text.report(fitting, paint(options)))
    code = exit_code(compilation, options)
    if code:
        print_findings(compilation, options, to_stderr=True)
    return code


def _fitting(compilation: Compilation, shape: Resources) -> Fitting | None:
    """None where nothing is known for sure, since a document cannot be read."""
    return None if compilation.index.broken is not None else shapes.fitting(compilation.index, shape)
