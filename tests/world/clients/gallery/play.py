"""Plays the gallery: each bug is found, its token replays, and the corrected program has no error.

Called with how often a token is replayed, how many busy loops run meanwhile, and the numbers of the
bugs, all without any; prints a line for each bug.
"""

import subprocess
import sys
from functools import partial

import blobs  # noqa: F401
import others  # noqa: F401
from bugs import BUGS
from latchfs import Server

FOUND_WITHIN = 10
"""In how many runs each bug must be found."""


def errors(server, mark):
    found = server.api.get("/report", {"since": mark, "level": "error"})["findings"]
    return [(finding["rule"], finding["object"]) for finding in found]


def play(server, program, replays):
    bad = server.explore(partial(program, server, False), **program.options)
    assert bad.failure, f"not found: {bad}"
    failure = bad.failure
    assert failure.run <= FOUND_WITHIN, f"found in run {failure.run}"
    for _ in range(replays):
        again = server.explore(
            partial(program, server, False), **program.options, replay=failure.token
        )
        assert again.failure and again.runs == 1, f"{failure.token} did not replay: {again}"
        # Texts have the IDs of requests.
        assert type(again.failure.error) is type(failure.error), again.failure.error
    mark = f"good {program.number}"
    server.mark(mark)
    good = server.explore(partial(program, server, True), **program.options)
    if good.failure:
        print(good.failure.table())
        raise good.failure.error
    assert good.complete, good
    assert not errors(server, mark), errors(server, mark)
    return f"run {failure.run} of {bad.runs}, {failure.token}; corrected: {good}"


def main():
    replays, loops, *numbers = map(int, sys.argv[1:])
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        with Server() as server:
            for program in BUGS:
                if not numbers or program.number in numbers:
                    found = play(server, program, replays)
                    print(f"{program.number} {program.__name__}: {found}", flush=True)
                    server.reset()
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    print("played", flush=True)


main()
