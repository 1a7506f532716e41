#!/usr/bin/env python3
"""Checks the files of counts.h of all ranks of a run: each message that was sent was received, or truncated, and no other.

    balance.py counts.0 counts.1 counts.2
"""

import collections
import re
import sys


def balance(paths):
    """Messages in flight by (from, to, tag, bytes), and the number of those that were sent."""
    flying, total = collections.Counter(), 0
    for path in paths:
        rank = re.search(r"\.(\d+)$", path).group(1)
        for line in open(path, encoding="ascii"):
            kind, *values = line.split()
            if kind not in ("sent", "received", "truncated"):
                continue
            peer, tag, size, count = values
            if kind == "sent":
                flying[rank, peer, tag, size] += int(count)
                total += int(count)
            else:
                flying[peer, rank, tag, size] -= int(count)
    return flying, total


def main():
    flying, total = balance(sys.argv[1:])
    wrong = sorted(key for key, count in flying.items() if count)
    for sender, receiver, tag, size in wrong:
        print(f"{flying[sender, receiver, tag, size]:+} from {sender} to {receiver}, tag {tag}, {size} bytes")
    print(f"{total} messages of {len(sys.argv) - 1} ranks, {'not balanced' if wrong else 'balanced'}")
    return bool(wrong) or total == 0


sys.exit(main())
