"""What other tools wrote, read into conversations; nothing is written back to it."""

from memcli.exchange.detect import FORMATS
from memcli.exchange.read import Opened, open_file

__all__ = ["FORMATS", "Opened", "open_file"]
