"""The library preloaded into user-mode Linux: a short register state can be written back to a process."""

from __future__ import annotations

import os
import subprocess
import sys

from samovar import installation

SHORT_BYTES = 576
"""The size of a register state without AVX."""
WRITE_BACK = f"""
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long
TRACEME, GETREGSET, SETREGSET, XSTATE = 0, 0x4204, 0x4205, 0x202
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
def transfer(request, memory):
    part = Part(ctypes.addressof(memory), len(memory))
    result = libc.ptrace(request, pid, XSTATE, ctypes.addressof(part))
    return part.length if result == 0 else os.strerror(ctypes.get_errno())
pid = os.fork()
if pid == 0:
    libc.ptrace(TRACEME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
os.waitpid(pid, 0)
try:
    memory = ctypes.create_string_buffer({SHORT_BYTES})
    transfer(GETREGSET, memory)
    memory[32] = 7  # the first byte of ST(0)
    memory[512] = memory[512][0] | 1  # x87 is not in its initial state
    print(transfer(SETREGSET, memory))
    read_back = ctypes.create_string_buffer(65536)
    print(transfer(GETREGSET, read_back) > {SHORT_BYTES}, read_back[32][0])
finally:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""


def write_back(preload: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WRITE_BACK],
        env={**os.environ, "LD_PRELOAD": preload},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return done.stdout


def test_a_register_state_shorter_than_the_processor_s_can_be_written_only_with_the_library() -> None:
    assert write_back("").startswith("Bad address\n")
    assert write_back(str(installation.lab_program("register_state.so"))) == f"{SHORT_BYTES}\nTrue 7\n"
