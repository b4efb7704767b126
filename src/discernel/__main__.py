"""``python -m discernel``: the command line."""

from discernel.cli import main

if __name__ == "__main__":
    main()
