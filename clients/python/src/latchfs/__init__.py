"""Azure Storage on your own machine, built for testing concurrency.

`Server` starts a latchfs server of its own, or connects to one that runs; the fixture `latchfs` of
the pytest plugin gives each test an empty one.
"""

from ._binary import binary
from ._clients import Clients, Stuck
from ._controls import Clock, Fault, Gate, Hold, States
from ._errors import ApiError, LatchfsError, Refused, StartError, WaitTimeout
from ._explore import Explored, ExploreError, Failure
from ._server import Server

__all__ = [
    "ApiError",
    "Clients",
    "Clock",
    "ExploreError",
    "Explored",
    "Failure",
    "Fault",
    "Gate",
    "Hold",
    "LatchfsError",
    "Refused",
    "Server",
    "StartError",
    "States",
    "Stuck",
    "WaitTimeout",
    "binary",
]
