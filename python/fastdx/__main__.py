"""``python -m fastdx``."""

import sys

from fastdx.cli import main

if __name__ == "__main__":
    sys.exit(main())
