"""MUST: multistage sampling."""
