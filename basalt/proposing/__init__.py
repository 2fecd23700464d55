"""From the nodes of a cluster to a first environment: what `basalt init` proposes, and why not otherwise. Pure."""
