"""What holds for every test: how patient Hypothesis is with a machine that has other things to do, and that Ctrl-C ends
what a test starts.
"""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("basalt", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("basalt")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's background job, of which all processes inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
