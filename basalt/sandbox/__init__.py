"""A Kubernetes control plane with Volcano and pretended nodes, as processes on loopback: no containers, no network."""
