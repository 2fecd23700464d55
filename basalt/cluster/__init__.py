"""The cluster of a kubeconfig: what is to be applied there, in which order and after which waits; and what differs."""
