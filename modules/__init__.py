"""The platform, one module per part: each turns its part of the declaration into Kubernetes objects, as pure
functions of plain values. A module never reads files, never judges, and never imports another module.
"""
