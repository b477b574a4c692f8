"""Every figure and table that is reproduced, one folder per paper."""
