"""Property tests run without a deadline, and with the same examples every time in CI."""

import os

from hypothesis import settings

from tests.browser import browser, open_page

__all__ = ["browser", "open_page"]  # fixtures of all tests

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")
