"""How long tests wait: for what happens, as long as it takes; a limit only catches what hangs."""

import time

PATIENCE = 600.0  # seconds; a busy machine is many times slower than an idle one


def wait_until(condition, seconds=PATIENCE):
    """What the condition gives, as soon as it gives something."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
    return found
