"""The four papers, beside what is measured here, and our own comparisons.

    python -m experiments [PAPER …] [--table NAME] [--quick] [--sample] [--pictures FOLDER]

Prints each table beside the published figures. Steps are kept in .papers/ under a fingerprint of
fastdx, of the experiments and of what was asked, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from importlib import import_module
from pathlib import Path

from experiments.cache import FOLDER
from experiments.data import SHARED, Sample, Shared
from experiments.tables import Run
from fastdx.exceptions import FastdxWarning

PAPERS = {
    name: import_module(f"experiments.{name.replace('-', '_')}")
    for name in ("wsdm20", "icdm19", "post19", "tem21", "ours", "keeps", "counts", "frontier",
                 "learning", "nearer", "readable", "readable-peers", "prior",
                 "recommendation", "peers", "next-steps")
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments",
                                     description=__doc__.splitlines()[0])  # fmt: skip
    # No default: argparse would look for the empty list among the choices.
    parser.add_argument("papers", nargs="*", metavar="PAPER", choices=[*PAPERS, []],
                        help=f"of {', '.join(PAPERS)}")  # fmt: skip
    parser.add_argument("--table", metavar="NAME", help="only this one: " + ", ".join(
        f"{name} {table}" for name, paper in PAPERS.items() for table in paper.TABLES))  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="a small part, in under 3 minutes")
    parser.add_argument("--sample", action="store_true", help="made-up texts; so it is with "
                        "--quick where ../shared/data is absent")  # fmt: skip
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="needs matplotlib")
    args = parser.parse_args()
    # Reviews and mails hold signs of other encodings.
    warnings.simplefilter("ignore", FastdxWarning)
    made_up = args.sample or (args.quick and not SHARED.is_dir())
    source = Sample() if made_up else Shared()
    found = False
    for name in args.papers or PAPERS:
        for table_name, experiment in PAPERS[name].TABLES.items():
            if args.table not in (None, table_name):
                continue
            print(f"{name} {table_name}", file=sys.stderr, flush=True)
            run = Run(source, name, args.quick, FOLDER)
            table = experiment(run)
            drawn = bool(args.pictures and table.lines)
            text = table.markdown(rows=not (drawn and table.picture_alone))
            print(f"\n{text}\n\n{run.provenance()}", flush=True)
            if drawn:
                picture = args.pictures / f"{name}-{table_name}.svg"
                table.draw(picture)
                print(f"\n![{table.title}]({args.pictures.name}/{picture.name})")
            found = True
    if not found:
        parser.error(f"--table {args.table}: none of these papers has it")


if __name__ == "__main__":
    main()
