"""What the real API server and Volcano's webhooks say about the cases of the rules, beside what Basalt says."""
