"""What holds for every test: how patient Hypothesis is with a machine that has other things to do."""

from hypothesis import HealthCheck, settings

settings.register_profile("basalt", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("basalt")
