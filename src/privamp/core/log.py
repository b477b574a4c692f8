"""The `privamp` logger: it logs what was done, never what was drawn."""

import logging

logger = logging.getLogger("privamp")
logger.addHandler(logging.NullHandler())
