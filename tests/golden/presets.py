#!/usr/bin/env python3
"""Writes presets/NAME.txt: the collective calls of rank 0 of two ranks by each suite, as its sources prescribe them.

The rules below were read in the sources that each file names, not in Downbeat. A line has an operation, a size, and the calls from the
first of the operation to its last: `N( calls )` is repeated, `*( calls )` any number of times, as that depends on time. Barriers before the
first call and after the last, and calls that exchange times and numbers of calls, are not part of it; for the operation `barrier`, all
barriers from the first are.
"""
import pathlib

SIZES = [8, 1024, 65536, 1048576]
OPERATIONS = ["bcast", "reduce", "allreduce", "allgather", "alltoall"]
WIDTH = {"MPI_BYTE": 1, "MPI_CHAR": 1, "MPI_SIGNED_CHAR": 1, "MPI_INT": 4, "MPI_FLOAT": 4, "MPI_DOUBLE": 8}


def call(operation, size, message, number, reduction, root=0):
    type_of = number if "reduce" in operation else message
    words = [operation, type_of, str(size // WIDTH[type_of])]
    words += [reduction] if "reduce" in operation else []
    words += [str(root)] if operation in ("bcast", "reduce") else []
    return ":".join(words)


def after_each(count, one):
    """Calls, with a barrier between two."""
    return f"{count - 1}( {one} barrier ) {one}"


def osu(operation, one, size):
    return after_each(110 if size > 8192 else 1100, one)


def imb(operation, one, size):
    count = max(1, min(1000, (40 << 20) // size))
    loop = f"{one} barrier"
    return f"{loop} 2( barrier ) *( {loop} ) 2( barrier ) {count // 10}( {loop} ) 2( barrier ) {after_each(count, one)}"


def in_turns(ones, count):
    """A series of calls whose root changes with every call."""
    return f"{count // 2}( {ones[0]} {ones[1]} )" + (f" {ones[0]}" if count % 2 else "")


def imb_4(operation, ones, size):
    count = max(1, min(1000, (40 << 20) // size))
    return f"{in_turns(ones, 2)} 2( barrier ) {in_turns(ones, 5)} 2( barrier ) *( {ones[0]} {ones[1]} ) *( {ones[0]} )"


def phloem(operation, one, size):
    return f"{one} barrier barrier 5( {one} barrier ) barrier *( {one} barrier ) {one}"


def phloem_16(operation, one, size):
    return f"{one} barrier 5( {one} ) barrier *( {one} )"


def mpptest(operation, ones, size):
    series = f"{ones[0]} barrier {in_turns(ones, 50)}"
    return f"*( {series} barrier ) {series}"


def only_calls(operation, one, size):
    return f"*( {one} )"


def between(operation, one, size):
    return f"*( {one} barrier ) {one}"


BYTES = ("MPI_BYTE", "MPI_BYTE", "MPI_BOR")
# Rule, datatypes and reduction, all barriers of the operation `barrier`, and the source.
SUITES = {
    "osu": (osu, ("MPI_CHAR", "MPI_SIGNED_CHAR", "MPI_SUM"), "1100( barrier )",
            "OSU Micro-Benchmarks 7.5 (loops as in 7.4): c/mpi/collective/blocking/osu_*.c, c/util/osu_util.h, osu_util_mpi.c"),
    "imb": (imb, ("MPI_BYTE", "MPI_FLOAT", "MPI_SUM"), "5( barrier ) *( barrier ) 102( barrier ) 1002( barrier )",
            "Intel MPI Benchmarks 2021.7: src_c/IMB_*.c, src_c/IMB_settings.h, src_cpp/helpers/helper_IMB_functions.h"),
    "imb-4.0": (imb_4, ("MPI_BYTE", "MPI_FLOAT", "MPI_SUM"), "4( barrier ) 7( barrier ) 2( barrier ) *( barrier )",
                "Intel MPI Benchmarks 4.0: user's guide, sections on pseudo code, and IMB_settings.h; five trial calls are Downbeat's"),
    "phloem": (phloem, ("MPI_BYTE", "MPI_DOUBLE", "MPI_SUM"), "2( barrier ) 6( barrier ) *( barrier )",
               "mpiBench 1.5 of LLNL/mpiBench: mpiBench.c"),
    "phloem-1.6": (phloem_16, ("MPI_BYTE", "MPI_DOUBLE", "MPI_SUM"), "2( barrier ) 6( barrier ) *( barrier )",
                   "mpiBench 1.6 of LLNL/phloem: mpigraph-1.6/mpiBench/mpiBench.c"),
    "skampi": (only_calls, ("MPI_INT", "MPI_INT", "MPI_SUM"), "*( barrier )",
               "SKaMPI 5.0.4: measurement.c, ski/skampi_coll.ski, src/measurements/coll.c"),
    "mpptest": (mpptest, ("MPI_BYTE", "MPI_DOUBLE", "MPI_SUM"), "*( 52( barrier ) )",
                "mpptest: perftest/goptest.c, gopf.c; it has no reduce, allgather and alltoall, which follow the same rule here"),
    "reprompi": (between, BYTES, "*( barrier )",
                 "ReproMPI, hunsa/reprompi-dev: src/reprompi_bench/sync/process_sync/round_time_sync.c, src/benchmarkMPIcalls.c; "
                 "the barrier before each call is called as PMPI_Barrier, which a log of the program lacks"),
    "reprompi-2018": (only_calls, BYTES, "*( barrier )",
                      "Hunold and Carpen-Amarie: Hierarchical Clock Synchronization in MPI (2018), algorithm 5"),
}
ROTATES = {"imb-4.0", "mpptest"}

for name, (rule, types, barriers, source) in SUITES.items():
    lines = ["# downbeat calls 1", f"# {source}"]
    for operation in OPERATIONS:
        for size in SIZES:
            ones = [call(operation, size, *types, root) for root in (0, 1)]
            lines.append(f"{operation} {size}: {rule(operation, ones if name in ROTATES else ones[0], size)}")
    lines.append(f"barrier 0: {barriers}")
    (pathlib.Path(__file__).parent / "presets" / f"{name}.txt").write_text("\n".join(lines) + "\n")
