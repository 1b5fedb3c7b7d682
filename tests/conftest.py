"""What holds for every test: how hypothesis looks for counter-examples."""

import os

from hypothesis import settings

# Shared machines are slow now and then, so no example is timed. In CI the same examples run every time: a change
# is judged by what it changes, and the search for new counter-examples happens at the desk.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")
