"""The `privamp` logger: says what was done, never with what was drawn."""

import logging

logger = logging.getLogger("privamp")
logger.addHandler(logging.NullHandler())
