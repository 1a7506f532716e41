"""Writes an archive with OTF2's Python module, and compares all that its reader finds in copies of it.

check.py COPY FOLDER, where COPY is the program of the example `copy`.
"""

import subprocess
import sys

import otf2
from otf2.enums import CollectiveOp, GroupType, ParameterType, Paradigm, Type

DEFINITIONS = ("strings", "locations", "location_groups", "regions", "groups", "comms", "attributes", "metrics",
               "parameters", "system_tree_nodes")


def write(folder):
    with otf2.writer.open(folder, timer_resolution=1000000) as trace:
        of = trace.definitions
        host = of.system_tree_node("host")
        processes = [of.location_group(f"process {i}", system_tree_parent=host) for i in range(2)]
        locations = [of.location(f"thread {i}", group=process) for i, process in enumerate(processes)]
        region = of.region("work", source_file="a.c", begin_line_number=3, end_line_number=99)
        attribute = of.attribute(name="attribute", description="an attribute", type=Type.UINT64)
        parameter = of.parameter("parameter", ParameterType.INT64)
        of.group("ranks", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=locations)
        world = of.group("world", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=[0, 1])
        comm = of.comm("world", group=world)
        metric = of.metric("metric", unit="bytes")
        for rank, location in enumerate(locations):
            to = trace.event_writer_from_location(location)
            for i in range(300):
                time, peer = 1000 * i + rank, 1 - rank
                to.enter(time, region, {attribute: i * i})
                to.mpi_send(time + 1, peer, comm, i, 8 * i)
                to.mpi_isend(time + 1, peer, comm, i, 8 * i, i)
                to.mpi_isend_complete(time + 1, i)
                to.mpi_irecv_request(time + 2, i)
                to.mpi_irecv(time + 2, peer, comm, i, 8 * i, i)
                to.mpi_recv(time + 3, peer, comm, i, 8 * i)
                to.metric(time + 3, metric, 3.5 * i)
                to.parameter_int(time + 4, parameter, -i)
                to.mpi_collective_begin(time + 5)
                to.mpi_collective_end(time + 6, CollectiveOp.ALLREDUCE, comm, 0xFFFFFFFF, 8, 8)
                # Since version 3.2.
                if hasattr(to, "mpi_probe"):
                    to.mpi_probe(time + 7, peer, comm, i, i)
                    to.mpi_mrecv(time + 8, i, 64)
                    to.mpi_imrecv_request(time + 8, i, i + 1)
                    to.mpi_imrecv(time + 9, i + 1, 64)
                to.leave(time + 10, region)


def found(folder):
    lines = []
    with otf2.reader.open(f"{folder}/traces.otf2") as trace:
        lines.append(f"{trace.timer_resolution}")
        for name in DEFINITIONS:
            lines += [f"{name} {one}" for one in getattr(trace.definitions, name)]
        lines += [f"{location} {event}" for location, event in trace.events]
    return lines


def main(copy, folder):
    written = f"{folder}/written"
    write(written)
    expected = found(written)
    for order in "little", "big":
        to = f"{folder}/{order}"
        subprocess.run([copy, f"{written}/traces.otf2", to, order], check=True)
        for copied, original in zip(found(to), expected, strict=True):
            if copied != original:
                sys.exit(f"{order}: {copied}, not {original}")
    print(f"{len(expected)} definitions and events are the same in both byte orders")


main(*sys.argv[1:])
