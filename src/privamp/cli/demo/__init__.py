"""`privamp demo`: the command and the job it runs."""
