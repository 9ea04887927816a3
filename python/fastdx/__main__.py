"""The command as a process: ``fastdx`` and ``python -m fastdx``.

What it does is in `fastdx.cli`. Here is what makes it start and end sooner.
"""

import gc
import os
import sys

from fastdx._core import prepare_recommended


def command() -> int:
    """Run the command with the arguments of the process; return its exit code."""
    given = sys.argv[1:]
    try:
        # Not for another policy, or for help.
        own = any(a.startswith(("--eps", "--pol", "-h", "--help")) for a in given)
        if given[:1] == ["privatize"] and not own:
            # A thread makes the words and their search, while the command's modules are imported.
            prepare_recommended()
        from fastdx.cli import main

        code = main(given)
    except KeyboardInterrupt:  # also while modules are imported
        print("fastdx: interrupted", file=sys.stderr)
        # Output that is not written yet must not wait for a reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 130
    # The operating system takes everything back. Without this, the interpreter would look through
    # all objects for cycles first.
    gc.freeze()
    return code


if __name__ == "__main__":
    sys.exit(command())
