"""The compiler: documents -> objects -> findings and manifests. Never imports Pulumi, never opens a socket."""

__version__ = "0.1.0"
