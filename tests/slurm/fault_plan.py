"""Kills the service of a workspace at one of its calls: the fault plan of base/fault.h, whose layout this must know."""

import mmap
import struct

LAYOUT = struct.Struct("<qqqqIIiiI32s512si")  # of FaultPlan but its processes, 512 of 16 bytes
SIZE = LAYOUT.size + 512 * 16
POINTS, HITS, RANGE, REST = 0, 8, struct.Struct("<qq"), struct.Struct("<IIiiI")
COUNT, DIE = 0, 1  # actions
CALLER = 8  # as victim
SERVICE = 16  # as role
# Calls that change something or start a command of Slurm, and answers to requests. Not locks, nor how often it looks for the end of one.
KINDS = 1 | 2 | 4 | 8 | 16 | 32 | 64 | 128 | 4096 | 16384


class FaultPlan:
    def __init__(self, file):
        """At first it counts nothing."""
        self.file = file
        file.write_bytes(bytes(SIZE))
        with open(file, "r+b") as opened:
            self.memory = mmap.mmap(opened.fileno(), SIZE)

    def kill_service_at(self, point):
        """Of those that are counted from now on; 0: at none."""
        RANGE.pack_into(self.memory, 16, point, point)
        REST.pack_into(self.memory, 32, KINDS, SERVICE, DIE if point else COUNT, 0, CALLER)

    @property
    def points(self):
        return struct.unpack_from("<q", self.memory, POINTS)[0]

    @property
    def hits(self):
        return struct.unpack_from("<q", self.memory, HITS)[0]
