"""Statistical audits of the running code: any mechanism on any design, every workload, and known mistakes."""
