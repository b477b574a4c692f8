"""All reproduced figures and tables, one folder per paper."""
