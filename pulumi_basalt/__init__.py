"""Basalt for Pulumi: the program of an environment, and each module as a component for programs of one's own."""
