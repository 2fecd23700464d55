"""Objects to files: YAML text, the layout of the output folder, and its one atomic switch."""
