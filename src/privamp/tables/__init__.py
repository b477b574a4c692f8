"""Tables on disk: files and folders, columns, ids, and the secret files that hold samples and keys."""
