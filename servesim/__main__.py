"""``python -m servesim``: the ``servesim`` command."""

import sys

from servesim.cli import main

if __name__ == "__main__":
    sys.exit(main())
