"""Imported once by the fork server: every module that a first answer needs."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one job, one core
os.environ.setdefault("OMP_NUM_THREADS", "1")

from . import plan_survey, plan_training, which_design  # noqa: F401

which_design.answer(which_design.Job(which_design.State(rounds=2), "Poisson", "poisson:rate=0.02"))
