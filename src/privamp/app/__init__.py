"""The explorer: `privamp serve` opens a local page to compare designs and plan surveys and training.

Everything here but `web` works without the extra `[app]`: the controls of a view and how its URL is read (`controls`),
what a view computes and how it is copied (`which_design`, `plan_survey`, `plan_training`), the processes that compute
(`work`) and the access control of the server (`guard`). `web` draws them.
"""
