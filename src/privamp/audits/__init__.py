"""Statistical audits of what really runs: any mechanism on any design, every workload, and known mistakes."""
