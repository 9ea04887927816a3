"""The commands that stand on the laboratory; `fastdx.cli` finds them by name."""
