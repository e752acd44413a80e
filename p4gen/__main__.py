"""``python -m p4gen``: the same as the ``p4gen`` command."""

from p4gen.cli import main

if __name__ == "__main__":
    main()
