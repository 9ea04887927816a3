"""Policies that commands make: readers take those that are shown as advice."""

import argparse

from fastdx import Mechanism
from fastdx.cli import parser
from fastdx.cli.options import MechanismOptions

FILES = ("embedding", "graph", "policy", "skip")


def options(*words: object) -> MechanismOptions:
    """What a command says of its mechanism."""
    args = parser(str(words[0])).parse_args([str(word) for word in words])
    args.quiet = True
    return MechanismOptions.of(args)


def made(*words: object) -> Mechanism:
    """The mechanism that a command draws by."""
    return options(*words).make()


def weak(args: argparse.Namespace) -> bool:
    """Whether many common words come back under a command's policy, on the built-in words."""
    told = vars(args)
    if not {"allow_unchanged", "cover"} <= told.keys() or any(told.get(name) for name in FILES):
        return False
    # No output of a cover of k is likelier than 1/k: there is nothing to warn of, nor to make.
    if args.mechanism == "hyperbolic" or (args.cover or 0) > 10:
        return False
    args.quiet = True
    return MechanismOptions.of(args).make().unchanged.warning is not None
