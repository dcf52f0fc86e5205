"""Azure Storage on your own machine, built for testing concurrency.

`Server` starts a latchfs server of its own, or connects to one that runs; the fixture `latchfs` of
the pytest plugin gives each test an empty one.
"""

from ._binary import binary
from ._controls import Clock, Fault, Gate, Hold, States
from ._errors import ApiError, LatchfsError, Refused, StartError, WaitTimeout
from ._server import Server

__all__ = [
    "ApiError",
    "Clock",
    "Fault",
    "Gate",
    "Hold",
    "LatchfsError",
    "Refused",
    "Server",
    "StartError",
    "States",
    "WaitTimeout",
    "binary",
]
