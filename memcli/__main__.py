"""`python -m memcli`: the same as `mem`."""

import sys

from memcli.cli import main

sys.exit(main())
