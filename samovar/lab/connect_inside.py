"""Program that opens a TCP connection in a lab's network namespace, and passes its descriptor to its parent.

The controller or ssh (ProxyUseFdpass) starts the program with nsenter. The program's standard output is a
UNIX socket, over which it sends the descriptor as SCM_RIGHTS (unix(7)).
"""

import socket
import sys
import time

PAUSE_S = 0.05


def connect(address: str, port: int, deadline_s: float) -> socket.socket:
    """Return a TCP connection. Retry until the deadline, because a booting host refuses connections."""
    end_s = time.monotonic() + deadline_s
    while True:
        try:
            return socket.create_connection((address, port), timeout=max(end_s - time.monotonic(), PAUSE_S))
        except OSError:
            if time.monotonic() + PAUSE_S >= end_s:
                raise
            time.sleep(PAUSE_S)


def main() -> None:
    """Connect to the address and port in the first two arguments; the third is the deadline in seconds."""
    try:
        connection = connect(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
    except OSError as error:
        sys.exit(str(error))
    connection.setblocking(True)
    with socket.socket(fileno=1) as out:
        socket.send_fds(out, [b"\0"], [connection.fileno()])


if __name__ == "__main__":
    main()
