"""Compile the loops of ``discernel.arrays.loops`` while the package is installed or built.

Without a C compiler, or with ``DISCERNEL_COMPILED=0``, the package is pure Python, and NumPy
computes the same. ``python hatch_build.py`` compiles them in place.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "src" / "discernel" / "arrays" / "loops"
SOURCES = ("loops.c", "passes.h", "rows.h")
LIBRARY = FOLDER / "loops.compiled"
#: Loops are vectorized only if arithmetic sets no flags; products and sums are one operation where
#: the processor has it. Nothing else of IEEE 754 is given up.
OPTIONS = ("-O3", "-std=c11", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math")
OPTIONS += ("-ffp-contract=fast",)


def compile_loops() -> bool:
    """Compile the loops in place, and return whether there is a compiler that does."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if os.environ.get("DISCERNEL_COMPILED") == "0" or compiler is None or os.name == "nt":
        return False
    content = b"".join((FOLDER / name).read_bytes() for name in SOURCES)
    digest = hashlib.sha256(content).hexdigest()[:16]
    made = LIBRARY.with_suffix(f".{os.getpid()}")
    source = f'-DSOURCE="{digest}"'
    command = [*compiler.split(), *OPTIONS, source, str(FOLDER / "loops.c"), "-o", str(made), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", None) or error
        print(f"discernel: the loops were not compiled, NumPy is used: {said}", file=sys.stderr)
        made.unlink(missing_ok=True)
        return False
    made.replace(LIBRARY)  # at once: others may have the old one open
    return True


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # called by itself
    BuildHookInterface = None  # type: ignore[assignment,misc]

if BuildHookInterface is not None:

    class LoopsHook(BuildHookInterface):  # type: ignore[type-arg]
        """Put the compiled loops into a wheel, which is then one for this kind of machine."""

        PLUGIN_NAME = "custom"

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile the loops, and say what the wheel is for."""
            if not compile_loops() or version == "editable":
                return
            inside = str(LIBRARY.relative_to(FOLDER.parents[2]))
            build_data["force_include"][str(LIBRARY)] = inside
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"py3-none-{platform}"


if __name__ == "__main__":
    sys.exit(0 if compile_loops() else "No C compiler was found, or it failed.")
