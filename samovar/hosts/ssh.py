"""Open SSH connections to hosts through Fabric. Only this module imports Fabric and paramiko."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fabric
import paramiko
from paramiko.hostkeys import HostKeyEntry
from paramiko.ssh_exception import NoValidConnectionsError

from samovar.errors import SamovarError, TestbedError
from samovar.hosts.target import ConnectionLostError, Dialer, SshTarget, UnreachableError

# Without this, paramiko would log to the user's terminal. Its exceptions have the same information.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


class _UnknownHostKey(paramiko.MissingHostKeyPolicy):
    """Refuse a host whose host key is unknown, with an error that explains how to add the key."""

    def __init__(self, target: SshTarget) -> None:
        self._target = target

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        target = self._target
        seen, file = f"{key.get_name()} {key.fingerprint}", target.known_hosts_file
        kind = key.get_name().removeprefix("ssh-").split("-")[0]
        place = target.address if target.port == 22 else f"[{target.address}]:{target.port}"
        raise TestbedError(
            f"{target.host}: its host key is not known ({seen}) in {file}. Compare this key with "
            f"what `ssh-keygen -lf /etc/ssh/ssh_host_{kind}_key.pub` prints on the host's own console; "
            f"if they are equal, add this line to the file:\n{place} {key.get_name()} {key.get_base64()}"
        )


class _SftpClient(paramiko.SFTPClient):
    """An SFTP client whose prefetching thread prints no traceback if the connection ends.

    The thread that reads the file gets the error anyway.
    """

    def open(self, *arguments: Any, **named: Any) -> paramiko.SFTPFile:
        """Open a file; see paramiko.SFTPClient.open."""
        file = super().open(*arguments, **named)
        prefetch = getattr(file, "_prefetch_thread")  # noqa: B009

        def silent_prefetch(*sizes: Any) -> None:
            with suppress(OSError, EOFError, paramiko.SSHException):
                prefetch(*sizes)

        setattr(file, "_prefetch_thread", silent_prefetch)  # noqa: B010
        return file


class SshConnection:
    """One SSH connection to one host."""

    def __init__(self, connection: fabric.Connection, host: str) -> None:
        self._connection = connection
        self._host = host
        self._sftp: paramiko.SFTPClient | None = None
        self._sftp_lock = threading.Lock()

    def channel(self, command: str) -> paramiko.Channel:
        """Start a command on a new channel, with standard error joined to standard output.

        Raises ConnectionLostError.
        """
        with self._losses():
            channel: paramiko.Channel = self._connection.create_session()
            channel.set_combine_stderr(True)
            with _closed_after(channel, self._connection.connect_timeout):
                channel.exec_command(command)
            return channel

    @contextmanager
    def sftp(self, limit_s: float, *, wait: bool = True) -> Iterator[paramiko.SFTPClient]:
        """Yield the connection's SFTP client, which only one thread at a time may use.

        After a timeout, the next use gets a new client. Raises ConnectionLostError if the connection is lost,
        or if SFTP has not started after `limit_s`. Raises UnreachableError if another thread uses the client
        and `wait` is False.
        """
        if not self._sftp_lock.acquire(blocking=wait):
            raise UnreachableError(f"{self._host}: another thread is copying files")
        try:
            with self._losses():
                self._sftp = self._sftp or self._start_sftp(limit_s)
                yield self._sftp
        except TimeoutError:
            self._sftp = None
            raise
        finally:
            self._sftp_lock.release()

    def _start_sftp(self, limit_s: float) -> paramiko.SFTPClient:
        channel: paramiko.Channel = self._connection.transport.open_session()
        with _closed_after(channel, limit_s):
            channel.invoke_subsystem("sftp")
            try:
                return _SftpClient(channel)
            except paramiko.SFTPError as error:
                raise TestbedError(
                    f"{self._host}: SFTP does not answer as it must ({error}); the user's login shell must "
                    "print nothing"
                ) from error

    def answers(self, limit_s: float) -> bool:
        """Send a request to the SSH server; return whether it answers.

        If no answer arrives within `limit_s`, the connection is closed. OpenSSH does not know the request and
        refuses it, which counts as an answer (RFC 4254, section 4).
        """
        transport = self._connection.transport
        if transport is None or not transport.is_active():
            return False
        try:
            with _closed_after(self, limit_s):
                transport.global_request("keepalive@samovar", wait=True)
        except (paramiko.SSHException, EOFError, OSError):
            return False
        return bool(transport.is_active())

    def close(self) -> None:
        """Close the connection and all its channels; any thread may call this."""
        self._connection.close()

    @contextmanager
    def _losses(self) -> Iterator[None]:
        try:
            yield
        except (paramiko.SSHException, EOFError, ConnectionError) as error:
            raise ConnectionLostError(
                f"{self._host}: the connection was lost ({error or 'end of file'})"
            ) from error


@contextmanager
def _closed_after(closable: paramiko.Channel | SshConnection, limit_s: float) -> Iterator[None]:
    """Close a channel or connection on which an operation in this context takes longer than `limit_s`.

    paramiko waits for the replies to some requests without a limit. Raises SSHException after the limit.
    """
    expired = threading.Event()

    def close() -> None:
        expired.set()
        with suppress(paramiko.SSHException, EOFError, OSError):  # the connection may be closed meanwhile
            closable.close()

    timer = threading.Timer(limit_s, close)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (paramiko.SSHException, EOFError, OSError) as error:
        if expired.is_set():
            raise paramiko.SSHException(f"no answer to a request within {limit_s:g} s") from error
        raise
    finally:
        timer.cancel()


def connect(target: SshTarget, dialer: Dialer | None = None) -> SshConnection:
    """Open an SSH connection to a host.

    Raises UnreachableError if the host does not answer within `target.connect_timeout_s`. Raises TestbedError
    if the host key is not the known one, if the user's key cannot be used, or if the host refuses it.
    """
    kwargs: dict[str, Any] = {"allow_agent": target.key is None, "look_for_keys": target.key is None}
    timeouts = ("banner_timeout", "auth_timeout", "channel_timeout")
    kwargs |= dict.fromkeys(timeouts, target.connect_timeout_s)
    if target.key:  # Fabric does not accept None
        kwargs["key_filename"] = str(target.key)
    try:
        if dialer:
            kwargs["sock"] = dialer(target.address, target.port)
    except (OSError, SamovarError) as error:
        raise _explain(target, error) from error
    connection = fabric.Connection(
        host=target.address,
        user=target.user,
        port=target.port,
        # ~/.ssh/config and Fabric's own files are not read, so that a testbed file means the same on every
        # controller. A jump host in ssh_config would be accepted with any key (Fabric's AutoAddPolicy).
        config=fabric.Config(lazy=True, overrides={"load_ssh_configs": False}),
        connect_timeout=target.connect_timeout_s,
        connect_kwargs=kwargs,
    )
    connection.client.set_missing_host_key_policy(_UnknownHostKey(target))
    try:
        _load_known_hosts(connection.client.get_host_keys(), target.known_hosts_file)
    except OSError as error:
        raise TestbedError(
            f"{target.host}: cannot read known host keys: {target.known_hosts_file}: {error.strerror}; "
            f"give a known_hosts file (sshd(8))"
        ) from error
    try:
        connection.open()
    except TestbedError:
        connection.client.close()  # connection.close() closes nothing before the login is complete
        raise
    except Exception as error:  # paramiko's parsers of keys raise errors of many types
        transport = connection.client.get_transport()
        answered = transport is not None and transport.initial_kex_done
        connection.client.close()
        raise _explain(target, error, answered) from error
    return SshConnection(connection, target.host)


def _load_known_hosts(keys: paramiko.HostKeys, file: Path) -> None:
    """Read known host keys. Skip lines that cannot be parsed, as OpenSSH does. Raises OSError.

    paramiko.HostKeys.load() would fail at such a line, although it may be of another host. As in that method,
    the first of several keys of one type for one host counts.
    """
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        entry = None
        if not line.lstrip().startswith("#"):
            with suppress(Exception):  # paramiko's parsers of keys raise errors of many types
                entry = HostKeyEntry.from_line(line.strip())
        if entry:
            kind = entry.key.get_name()
            for name in entry.hostnames:
                if kind not in (keys.lookup(name) or {}):
                    keys.add(name, kind, entry.key)


def _explain(target: SshTarget, error: Exception, answered: bool = False) -> TestbedError:
    """Return the error for the user; `answered` means that the host has completed the key exchange."""
    where = f"{target.host}: {target.user}@{target.address}:{target.port}"
    if isinstance(error, paramiko.BadHostKeyException):
        known, offered = error.expected_key, error.key
        lines = target.known_hosts_file.read_text(errors="replace").splitlines()
        number = next((f":{n}" for n, line in enumerate(lines, 1) if known.get_base64() in line), "")
        return TestbedError(
            f"{where}: the host key is not the known one: {offered.get_name()} {offered.fingerprint}, but "
            f"{target.known_hosts_file}{number} has {known.get_name()} {known.fingerprint}"
        )
    if isinstance(error, paramiko.PasswordRequiredException):
        key = target.key or "a key in ~/.ssh"
        return TestbedError(
            f"{where}: {key} has a passphrase; load it into ssh-agent, or use a key without one"
        )
    keys = target.key or "those of ssh-agent and ~/.ssh"
    if isinstance(error, paramiko.AuthenticationException):
        return TestbedError(f"{where}: authentication refused; keys offered: {keys}")
    if isinstance(error, socket.gaierror):
        return UnreachableError(
            f"{target.host}: {target.address}: no such name; give an address, or a name that resolves"
        )
    if isinstance(error, FileNotFoundError) and target.key and not target.key.exists():
        return TestbedError(f"{where}: no key file {target.key}")
    if isinstance(error, NoValidConnectionsError):  # its own text does not have the cause
        error = next(iter(error.errors.values()))
    text = (error.strerror if isinstance(error, OSError) else "") or str(error).strip()
    reason = f" ({text})" if text else ""
    if answered and not isinstance(error, (ConnectionError, EOFError)):  # paramiko reads keys only now
        return TestbedError(
            f"{where}: no usable key{reason}; keys tried: {keys}; load a key into ssh-agent, or give a file "
            f"with a private key of type RSA, ECDSA or Ed25519"
        )
    hint = f"; {target.hint}" if target.hint else ""
    place, limit_s = f"{target.address}:{target.port}", target.connect_timeout_s
    return UnreachableError(f"{target.host}: no answer at {place} within {limit_s:g} s{reason}{hint}")
