"""Python's cycle collector, paused while a model is compiled."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """A context in which Python looks for no garbage cycles.

    Torch and the model libraries keep millions of objects alive, and each search walks through all of them: 0.2 s and
    more, several times per export. What a compilation makes lives until its end anyway.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
