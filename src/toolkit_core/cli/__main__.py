"""`python -m toolkit_core.cli` is `toolkit`, for where scripts are not on the path."""

from __future__ import annotations

import sys

from toolkit_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
