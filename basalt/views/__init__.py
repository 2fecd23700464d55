"""Objects as the scheduler, the API server or the network see them: trees, workloads, access. Judges nothing."""
