"""Checks wheels: size, tags, exported symbols, required libraries, the stable ABI.

    python tools/check_wheels.py target/wheels/*.whl

Prints a row per wheel; the exit code is 1 if there is a fault. Needs requirements-release.txt.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

TOOLS = Path(sys.executable).parent
"""Where the programs of requirements-release.txt are, on the path or not."""
LARGEST = 10_000_000
"""Bytes. Data take most of a wheel: vectors, n-grams and the recommended cover."""
EXPORTS = {"PyInit__core"}
# Libraries of every system with glibc, or with musl (PEP 600 and PEP 656).
SYSTEM = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libc.so",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}  # fmt: skip


def look(wheel: Path) -> list[str]:
    """A fault of a wheel."""
    wrong = []
    size = wheel.stat().st_size
    if size > LARGEST:
        wrong.append(f"{size:,} bytes, more than {LARGEST:,}")
    if "-cp310-abi3-" not in wheel.name:
        wrong.append("not for the stable ABI of Python 3.10")
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        extension = Path(archive.extract("fastdx/_core.abi3.so", folder))
        for needed in ("fastdx/py.typed", "fastdx/_core.pyi"):
            if needed not in names:
                wrong.append(f"{needed} is missing")
        for licence in ("LICENSE-MIT", "LICENSE-APACHE", "NOTICE"):
            if not any(name.endswith(f"licenses/{licence}") or name.endswith(f"/{licence}")
                       for name in names):  # fmt: skip
                wrong.append(f"{licence} is missing")
        with extension.open("rb") as file:
            elf = ELFFile(file)
            symbols = elf.get_section_by_name(".dynsym").iter_symbols()
            exports = {
                symbol.name
                for symbol in symbols
                if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"
            }
            if exports != EXPORTS:
                wrong.append(f"exports {sorted(exports)[:5]}, not {sorted(EXPORTS)}")
            dynamic = elf.get_section_by_name(".dynamic")
            assert isinstance(dynamic, DynamicSection)
            needs = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
            if needs - SYSTEM:
                wrong.append(f"needs {sorted(needs - SYSTEM)}")
            unpacked = extension.stat().st_size
            if any(section.name.startswith(".debug") for section in elf.iter_sections()):
                wrong.append("holds debug information")
        stable = subprocess.run(
            [TOOLS / "abi3audit", "--strict", "--assume-minimum-abi3", "3.10", str(extension)],
            capture_output=True,
            text=True,
            check=False,
        )
        if stable.returncode:
            wrong.append(f"abi3audit: {stable.stdout.strip()} {stable.stderr.strip()}")
    if "manylinux" in wheel.name:
        shown = subprocess.run([TOOLS / "auditwheel", "show", str(wheel)],
                               capture_output=True, text=True, check=False)  # fmt: skip
        platform = (
            wheel.stem.rsplit("-", 1)[1].split(".")[0].replace("manylinux2014", "manylinux_2_17")
        )
        if f'"{platform}"' not in " ".join(shown.stdout.split()):
            wrong.append(f"auditwheel: {' '.join(shown.stdout.split())} {shown.stderr.strip()}")
    print(f"{wheel.name}: {size:,} bytes, extension {unpacked:,}: {'; '.join(wrong) or 'right'}")
    return wrong


def main() -> int:
    wheels = [Path(name) for name in sys.argv[1:]]
    if not wheels:
        print("no wheels are named", file=sys.stderr)
        return 2
    return int(any([look(wheel) for wheel in wheels]))  # a list, so that all wheels are checked


if __name__ == "__main__":
    sys.exit(main())
