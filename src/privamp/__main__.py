"""`python -m privamp` is `privamp`."""

from .cli import main

if __name__ == "__main__":
    main()
