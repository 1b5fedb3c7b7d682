"""What other tools wrote, read into conversations and remembered things; nothing is written back to it."""

from memcli.exchange.detect import FORMATS
from memcli.exchange.places import places
from memcli.exchange.read import Opened, Reading, open_file, reading

__all__ = ["FORMATS", "Opened", "Reading", "open_file", "places", "reading"]
