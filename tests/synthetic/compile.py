"""Compile the sample kernels: ``code/NAME.cu`` -> ``NAME.cubin`` and its disassembly ``NAME.sass``.

Both are committed, so that writing the samples needs no compiler:  python -m tests.synthetic.compile
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from tests.ncurep import Code, Device, Launch, symbol, write_report

CODE = Path(__file__).with_name("code")
ARCHITECTURES = {"gemm": (8, 0), "copy": (9, 0), "transpose": (9, 0), "row_sum": (9, 0), "horner": (9, 0)}


def source_path(name: str) -> str:
    """Return the path under which the line table and the reports know ``code/NAME.cu``."""
    return f"/synthetic/{name}.cu"


def compile_cubin(name: str, nvcc: str) -> bytes:
    """Return the cubin of ``code/NAME.cu`` with line information and without paths of this machine."""
    major, minor = ARCHITECTURES[name]
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, f"{name}.cu"), Path(folder, f"{name}.cubin")
        source.write_text(f'#line 1 "{source_path(name)}"\n' + (CODE / f"{name}.cu").read_text())
        options = ("-cubin", f"-arch=sm_{major}{minor}", "-lineinfo", "-O3")
        subprocess.run([nvcc, *options, "-o", str(cubin), str(source)], check=True)
        return cubin.read_bytes()


def functions(cubin: bytes) -> list[str]:
    """Return the mangled names of the kernels in a cubin, from its section names, sorted."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    strings = sections[names][4]
    found = (cubin[strings + s[0] : cubin.index(b"\0", strings + s[0])].decode() for s in sections)
    return sorted(name.removeprefix(".text.") for name in found if name.startswith(".text."))


def disassemble(cubin: bytes, mangled: str, cc: tuple[int, int]) -> list[tuple[int, str, str, int]]:
    """Return (offset [byte], SASS, source file, line) of each instruction, as ncu_report shows them."""
    import ncu_report

    code = Code(cubin)
    with tempfile.TemporaryDirectory() as folder:
        launch = Launch(f"{mangled}()", mangled=mangled, code=code)
        context = ncu_report.load_report(
            str(write_report(Path(folder, "a.ncu-rep"), [launch], Device(cc=cc)))
        )
        action = context[0].action_by_idx(0)
        rows = []
        for offset in range(0, symbol(cubin, mangled).size, 16):
            where = action.source_info(code.address + offset)
            text = " ".join(action.sass_by_pc(code.address + offset).split())
            rows.append((offset, text, where.file_name(), where.line()))
        return rows


def main() -> None:
    """Compile every kernel and write cubins and listings."""
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    for name, cc in ARCHITECTURES.items():
        cubin = compile_cubin(name, nvcc)
        (CODE / f"{name}.cubin").write_bytes(cubin)
        lines = []
        for mangled in functions(cubin):
            lines.append(f"# {mangled}")
            lines += [
                f"{offset:#06x}\t{text}\t{line}\t{file}"
                for offset, text, file, line in disassemble(cubin, mangled, cc)
            ]
        (CODE / f"{name}.sass").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
