"""Jobs for the tests of `privamp.app.work`; its processes import them from here."""

import os
import time
from pathlib import Path

from privamp.errors import InvalidInput


def answer(job):
    word, value = job
    if word == "refuse":
        raise InvalidInput("size must be at least 1, got 0 instead")
    if word == "fail":
        raise RuntimeError(f"secret {value}")
    if word == "die":
        os._exit(3)
    if word == "sleep":
        time.sleep(20)
        Path(value).write_text("finished")
    return value * 2
