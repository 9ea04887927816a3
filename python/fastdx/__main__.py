"""``python -m fastdx``."""

import sys

from fastdx.cli import main

sys.exit(main())
