"""Plays the rounds of one SDK against a running latchfs: every public method, good and refused.

Usage: `python -m play FACE FACTS`, with this folder and that of the rounds on PYTHONPATH. FACE is
`sync` or `aio`. FACTS is JSON: account, key, endpoint, connection_string, and what these rounds
need beside. The module `library` has the LIBRARY, the ROUNDS and their Stage.

Prints the face when all is well. Fails with an assertion where an answer is not as expected, and
with a list where the table of methods, the SDK and what the rounds called differ.
"""

import asyncio
import json
import logging
import sys
import time
import warnings

from faces import Face
from library import LIBRARY, ROUNDS, Stage
from methods import differences


async def main(name, facts):
    stage = Stage(json.loads(facts), Face(LIBRARY, name))
    try:
        for play in ROUNDS:
            start = time.monotonic()
            await play(stage)
            took = time.monotonic() - start
            print(f"{play.__module__}.{play.__name__}: {took:.2f} s", file=sys.stderr)
    finally:
        await stage.close()
    found = list(differences(stage.face))
    if found:
        sys.exit("\n".join(found))
    print(name)


# The SDK keeps methods that it calls deprecated, and logs that an answer to HEAD has no body.
warnings.simplefilter("ignore", DeprecationWarning)
logging.getLogger("azure").setLevel(logging.ERROR)
asyncio.run(main(*sys.argv[1:]))
