#!/usr/bin/env python3
"""Builds the programs of this folder that keep counts, runs them under one MPI library, and checks their counts.

    run.py openmpi|mpich FOLDER [--ranks 2,3,4,5] [--only messages] [--preload libdownbeat_trace.so]

FOLDER receives the programs and the counts, as PROGRAM.RANKS.RANK. With --preload each program also runs with that library
in LD_PRELOAD, and must count the same (PROGRAM.RANKS.traced.RANK), the numbers of unsuccessful tests excepted.
"""

import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
C_FLAGS = ["-g", "-Wall", "-Wextra", "-pthread"]
# Headers of both libraries make gcc think that MPI_STATUSES_IGNORE must be an array.
C_FLAGS += ["-Wno-stringop-overflow", "-Wno-stringop-overread"]
FORTRAN_FLAGS = ["-g", "-w", "-fallow-argument-mismatch", "-ffree-line-length-none"]
LAUNCH = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}


def build(mpi, folder):
    """Compiles everything, and gives the names of the programs with their arguments."""

    def compile_with(wrapper, *arguments):
        subprocess.run([f"{wrapper}.{mpi}", *map(str, arguments)], check=True, cwd=HERE)

    parts = sorted(HERE.glob("messages*.c"))
    compile_with("mpicc", *C_FLAGS, *parts, "counts.c", "-o", folder / "messages")
    compile_with("mpicc", *C_FLAGS, "-c", "counts.c", "-o", folder / "counts.o")
    newer = ["-DMPI_4"] if mpi == "mpich" else ["-DOPEN_MPI_4"]
    for binding in ("mpif", "mpi", "f08"):
        name = folder / f"messages_{binding}"
        modules = folder / f"modules_{binding}"
        modules.mkdir(exist_ok=True)
        options = [*FORTRAN_FLAGS, f"-DBINDING_{binding.upper()}", *newer, f"-J{modules}"]
        compile_with("mpif90", *options, "messages.F90", folder / "counts.o", "-o", name)
    plain = ["odd", "threads", "pcontrol"] + (["session"] if mpi == "mpich" else [])
    for name in plain:
        compile_with("mpicc", *C_FLAGS, f"{name}.c", "counts.c", "-o", folder / name)
    compile_with("mpicc", *C_FLAGS, "-shared", "-fPIC", "plugin_mpi.c", "counts.c", "-o", folder / "plugin_mpi.so")
    subprocess.run(["cc", *C_FLAGS, "loads_mpi.c", "-ldl", "-o", str(folder / "loads_mpi")], check=True, cwd=HERE)
    programs = {name: [] for name in ["messages", "messages_mpif", "messages_mpi", "messages_f08", *plain]}
    programs["loads_mpi"] = [str(folder / "plugin_mpi.so")]
    return programs


def run(mpi, program, arguments, ranks, counts, preload=None):
    """Runs a program, and gives what it counted, one text per rank. Says what went wrong, and gives None."""
    for old in counts.parent.glob(counts.name + ".[0-9]*"):
        old.unlink()
    command = [f"mpirun.{mpi}", "-np", str(ranks)]
    command += ["env", f"LD_PRELOAD={preload}"] if preload else []
    environment = {**os.environ, **LAUNCH, "MESSAGES_OUT": str(counts)}
    try:
        end = subprocess.run(
            [*command, str(program), *arguments], env=environment, capture_output=True, text=True, timeout=120,
            stdin=subprocess.DEVNULL, check=False,
        )
    except subprocess.TimeoutExpired:
        return print(f"{counts.name}: no end after 120 s")
    if end.returncode:
        return print(f"{counts.name}: exit code {end.returncode}\n{end.stdout}{end.stderr}")
    files = [f"{counts}.{rank}" for rank in range(ranks)]
    balance = subprocess.run([HERE / "balance.py", *files], capture_output=True, text=True, check=False)
    print(f"{counts.name}: {balance.stdout}", end="", flush=True)
    return None if balance.returncode else [open(path, encoding="ascii").read() for path in files]


def comparable(text):
    return [line for line in text.splitlines() if not line.startswith("failed ")]


def same(plain, traced):
    """Prints the lines that only one of both runs has."""
    is_same = True
    for rank, (left, right) in enumerate(zip(plain, traced)):
        left, right = comparable(left), comparable(right)
        for sign, lines, others in (("-", left, right), ("+", right, left)):
            for line in lines:
                if line not in others:
                    print(f"  rank {rank}: {sign}{line}")
                    is_same = False
    return is_same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mpi", choices=["openmpi", "mpich"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--ranks", default="2,3,4,5")
    parser.add_argument("--only", help="part of a program's name")
    parser.add_argument("--preload")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    is_right = True
    for name, arguments in build(options.mpi, folder).items():
        if options.only and options.only not in name:
            continue
        for ranks in map(int, options.ranks.split(",")):
            plain = run(options.mpi, folder / name, arguments, ranks, folder / f"{name}.{ranks}")
            is_right &= plain is not None
            if options.preload:
                counts = folder / f"{name}.{ranks}.traced"
                traced = run(options.mpi, folder / name, arguments, ranks, counts, options.preload)
                is_right &= bool(plain and traced and same(plain, traced))
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
