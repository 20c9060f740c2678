"""Property tests have no deadline, and in CI the same examples every time.

No test fills the user's cache, or depends on how wide a terminal is.
"""

import os
import signal

from hypothesis import settings

from tests.browser import browser, open_page, open_shared

__all__ = ["browser", "open_page", "open_shared"]  # fixtures of all tests

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

os.environ["SERVESIM_CACHE_DIR"] = ""
os.environ.pop("COLUMNS", None)

# What is started in the background ignores Ctrl-C, and so would all that the tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
