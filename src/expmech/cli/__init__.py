"""The command line: parse, call the library, render. No probability here."""
