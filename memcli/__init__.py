"""`mem`: look into, correct, review and prove what an agent remembers, in one SQLite file."""

__version__ = "0.1.0"
