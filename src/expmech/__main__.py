"""``python -m expmech``: the program `expmech`."""

from expmech.cli.main import main

if __name__ == "__main__":
    main()
