"""SSH through Fabric: the one module that knows of Fabric and paramiko."""

from __future__ import annotations

import base64
import hashlib
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fabric
import paramiko

from samovar.errors import SamovarError, TestbedError
from samovar.hosts.target import Dialer, Target, UnreachableError

# What paramiko has to say of a failure is in the exception; its own log would land on the user's terminal.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


class _Refuse(paramiko.MissingHostKeyPolicy):
    """Refuse a host whose key is not known, and say how it would become known."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        target = self._target
        seen, file = f"{key.get_name()} {_fingerprint(key)}", target.known_hosts_file
        kind = key.get_name().removeprefix("ssh-").split("-")[0]
        raise TestbedError(
            f"{target.host}: its host key is not known ({seen}); accepted: one in {file}. Compare it to what "
            f"`ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub` prints on the host's own console; "
            f"if they are the same, add this line:\n{_known_line(target, key)}"
        )


def _known_line(target: Target, key: paramiko.PKey) -> str:
    """Return the line of the key that was seen: what a tool asked for anew might be another's."""
    place = target.address if target.port == 22 else f"[{target.address}]:{target.port}"
    return f"{place} {key.get_name()} {key.get_base64()}"


class _SftpClient(paramiko.SFTPClient):
    """An SFTP client whose thread that asks ahead ends without a word when the connection does.

    Whoever reads the file is told; the thread's traceback would only stand beside that.
    """

    @classmethod
    def over(cls, transport: paramiko.Transport) -> paramiko.SFTPClient:
        """Return a client over a connection; raises SSHException when that is lost."""
        client = cls.from_transport(transport)
        assert client  # its type allows for None, which it never returns
        return client

    def open(self, *arguments: Any, **named: Any) -> paramiko.SFTPFile:
        """Open a file; see paramiko.SFTPClient.open."""
        file = super().open(*arguments, **named)
        ask_ahead = getattr(file, "_prefetch_thread")  # noqa: B009

        def asked(*sizes: Any) -> None:
            with suppress(OSError, EOFError, paramiko.SSHException):
                ask_ahead(*sizes)

        setattr(file, "_prefetch_thread", asked)  # noqa: B010
        return file


class SshConnection:
    """One SSH connection to one host."""

    def __init__(self, connection: fabric.Connection, host: str) -> None:
        self._connection = connection
        self._host = host
        self._sftp: paramiko.SFTPClient | None = None
        self._peeping: paramiko.SFTPClient | None = None
        self._one_peep = threading.Lock()

    def channel(self, command: str) -> paramiko.Channel:
        """Start a command on a channel of its own, both outputs as one. Raises UnreachableError."""
        with self._losses():
            channel: paramiko.Channel = self._connection.create_session()
            channel.set_combine_stderr(True)
            channel.exec_command(command)
            return channel

    @contextmanager
    def sftp(self) -> Iterator[paramiko.SFTPClient]:
        """Lend the connection's SFTP client, made at the first call; one that missed an answer is not used
        again.

        Raises UnreachableError when the connection is lost.
        """
        try:
            with self._losses():
                if self._sftp is None:
                    self._sftp = _SftpClient.over(self._connection.transport)
                yield self._sftp
        except TimeoutError:
            self._sftp = None
            raise

    def peek(self, path: str, size_bytes: int, timeout_s: float) -> bytes | None:
        """Read the beginning of a file beside whatever else is under way here; None when that cannot be.

        It has an SFTP client of its own, for one thread at a time: paramiko's is not made for several.
        """
        if not self._one_peep.acquire(blocking=False):
            return None
        try:
            if self._peeping is None:
                self._peeping = _SftpClient.over(self._connection.transport)
            channel = self._peeping.get_channel()
            if channel is None:
                return None
            channel.settimeout(timeout_s)
            with self._peeping.open(path, "rb") as file:
                return bytes(file.read(size_bytes))
        except TimeoutError:
            self._peeping = None
        except (paramiko.SSHException, EOFError, OSError, AttributeError):
            pass  # no such file, or a connection that is gone, which is for whoever needs it to find
        finally:
            self._one_peep.release()
        return None

    def answers(self) -> bool:
        """Ask the SSH server for a sign of life and wait until it gives one, or the connection is closed.

        Any answer will do: OpenSSH refuses a request that it does not know (RFC 4254, section 4).
        """
        transport = self._connection.transport
        if transport is None or not transport.is_active():
            return False
        try:
            transport.global_request("keepalive@samovar", wait=True)
        except (paramiko.SSHException, EOFError, OSError):
            return False
        return bool(transport.is_active())

    def close(self) -> None:
        """Close the connection and every channel on it; any thread may."""
        self._connection.close()

    @contextmanager
    def _losses(self) -> Iterator[None]:
        try:
            yield
        except (paramiko.SSHException, EOFError) as error:
            raise UnreachableError(
                f"{self._host}: the connection was lost ({error or 'end of file'})"
            ) from error


def connect(target: Target, dialer: Dialer | None = None) -> SshConnection:
    """Open a connection.

    Raises UnreachableError when nothing answers within target.connect_timeout_s, TestbedError when the host
    key or the user's key is refused.
    """
    connection = _connection(target, dialer)
    try:
        connection.open()
    except TestbedError:
        connection.close()
        raise
    except (OSError, paramiko.SSHException, EOFError) as error:
        connection.close()
        raise _explain(target, error) from error
    return SshConnection(connection, target.host)


def _connection(target: Target, dialer: Dialer | None) -> fabric.Connection:
    # Neither ~/.ssh/config nor Fabric's own files: a testbed file says all there is, on every controller
    # alike. A jump host of ssh_config would be accepted with any key: Fabric's gateway has its AutoAddPolicy.
    config = fabric.Config(lazy=True, overrides={"load_ssh_configs": False})
    connection = fabric.Connection(
        host=target.address,
        user=target.user,
        port=target.port,
        config=config,
        connect_timeout=target.connect_timeout_s,
        connect_kwargs=_connect_kwargs(target, dialer),
    )
    _pin_host_keys(connection.client, target)
    return connection


def _connect_kwargs(target: Target, dialer: Dialer | None) -> dict[str, Any]:
    kwargs: dict[str, Any] = {
        "allow_agent": target.key is None,
        "look_for_keys": target.key is None,
        "banner_timeout": target.connect_timeout_s,
        "auth_timeout": target.connect_timeout_s,
        "channel_timeout": target.connect_timeout_s,
    }
    if target.key:  # Fabric takes no None for it
        kwargs["key_filename"] = str(target.key)
    if dialer:
        kwargs["sock"] = _dial(target, dialer)
    return kwargs


def _dial(target: Target, dialer: Dialer) -> socket.socket:
    try:
        return dialer(target.address, target.port)
    except (OSError, SamovarError) as error:
        raise _explain(target, error) from error


def _pin_host_keys(client: paramiko.SSHClient, target: Target) -> None:
    client.set_missing_host_key_policy(_Refuse(target))
    try:
        client.load_system_host_keys(str(target.known_hosts_file))
    except OSError as error:
        raise TestbedError(
            f"{target.host}: no list of host keys: {target.known_hosts_file}: {error.strerror}; "
            f"accepted: a file in the form of sshd(8), known_hosts"
        ) from error


def _explain(target: Target, error: Exception) -> TestbedError:
    where = f"{target.host}: {target.user}@{target.address}:{target.port}"
    if isinstance(error, paramiko.BadHostKeyException):
        return TestbedError(f"{where}: {_wrong_host_key(target, error)}")
    if isinstance(error, paramiko.PasswordRequiredException):
        return TestbedError(
            f"{where}: {target.key} is encrypted; accepted: a plain key, or one held by ssh-agent"
        )
    if isinstance(error, paramiko.AuthenticationException):
        offered = str(target.key) if target.key else "those of ssh-agent and ~/.ssh"
        return TestbedError(f"{where}: authentication refused; keys offered: {offered}")
    if isinstance(error, socket.gaierror):
        return UnreachableError(
            f"{target.host}: {target.address}: no such name; accepted: an address, or a name that resolves"
        )
    if isinstance(error, FileNotFoundError) and target.key and not target.key.exists():
        return TestbedError(f"{where}: no key file {target.key}")
    return UnreachableError(_no_answer(target, error))


def _no_answer(target: Target, error: Exception) -> str:
    message = (
        f"{target.host}: no answer at {target.address}:{target.port} within {target.connect_timeout_s:g} s"
    )
    reason = str(error).strip()
    return "; ".join([message + (f" ({reason})" if reason else ""), *([target.hint] if target.hint else [])])


def _wrong_host_key(target: Target, error: paramiko.BadHostKeyException) -> str:
    known = error.expected_key
    line = _line_of_key(target.known_hosts_file, known)
    where = f"{target.known_hosts_file}:{line}" if line else str(target.known_hosts_file)
    return (
        f"the host key is not the known one: {error.key.get_name()} {_fingerprint(error.key)}, "
        f"but {where} has {known.get_name()} {_fingerprint(known)}"
    )


def _line_of_key(file: Path, key: paramiko.PKey) -> int | None:
    lines = file.read_text(errors="replace").splitlines()
    return next((n for n, line in enumerate(lines, 1) if key.get_base64() in line), None)


def _fingerprint(key: paramiko.PKey) -> str:
    digest = hashlib.sha256(key.asbytes()).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
