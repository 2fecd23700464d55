"""The policy pack: Basalt's rules and guardrails on what any Pulumi program registers with Kubernetes."""
