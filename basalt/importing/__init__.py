"""Plain manifests to Basalt's documents: what a document says exactly becomes one, the rest is kept as it is."""
