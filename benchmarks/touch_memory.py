"""Touch memory in large pages and let go of it, so that a benchmark that comes next finds memory at hand.

    python benchmarks/touch_memory.py

The host of a virtual machine may take back what is free there and give it again slowly: 5 ms for 2 MB were
seen, where clearing them takes 0.1. That would be measured for whoever happens to touch it first.
"""

import mmap

BYTES = 512 * 2**20
"""More than any of the benchmarks' tables."""

if __name__ == "__main__":
    memory = mmap.mmap(-1, BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    for at in range(0, BYTES, mmap.PAGESIZE):
        memory[at] = 1
