"""What a program begins with that moves the clock of its own process."""

IMPORT = """\
import sys
# time_machine brings along what it finds of these, which takes longer than most commands do.
sys.modules["pytest"] = sys.modules["dateutil.parser"] = None
import time_machine
del sys.modules["pytest"], sys.modules["dateutil.parser"]
"""
