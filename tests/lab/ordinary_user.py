"""Lab hosts with an ordinary login user, for whom sudo allows only what `fab sudoers` prints.

The changed files are mounted over those of the hosts, in their own mount namespaces; the machine's files do not change.
"""

from __future__ import annotations

from pathlib import Path

from samovar.recipes import quote
from tests.lab.campaigns import ROOT, Checkout, make_checkout

USER, UID = "lena", 4242
HOSTS = ("src", "rtr", "dst")

# The hosts' root file system does not honour set-user-ID bits, so sudo is copied to a tmpfs. ping(8) needs no privilege if
# the administrator allows everybody to open ICMP sockets, as Debian does.
PREPARE = """
set -e
mkdir -p /run/own && mount -t tmpfs -o mode=755 own /run/own
cp /usr/bin/sudo /run/own/sudo && chown 0:0 /run/own/sudo && chmod 4755 /run/own/sudo
{ cat /etc/passwd; echo {account}; } >/run/own/passwd
{ cat /etc/shadow; echo {shadow}; } >/run/own/shadow
chmod 600 /run/own/shadow
: >/run/own/sudoers; chmod 440 /run/own/sudoers
for file in passwd shadow sudoers; do mount --bind /run/own/$file /etc/$file; done
mount --bind /run/own/sudo /usr/bin/sudo
echo "0 2147483647" >/proc/sys/net/ipv4/ping_group_range
"""


def make_ordinary(folder: Path) -> Checkout:
    """Make a checkout with its own testbed, whose lab runs in namespaces of this machine's kernel."""
    made = make_checkout(folder)
    (folder / "hosts").unlink()
    (folder / "hosts").mkdir()
    (folder / "hosts" / "lab.yaml").write_text(
        (ROOT / "hosts" / "lab.yaml").read_text().replace("kernel: auto", "kernel: native")
    )
    return made


def prepare(checkout: Checkout) -> None:
    """Add the user to every host of the running lab; sudo allows nothing to this user yet.

    The testbed's file then names this user as the login user.
    """
    account, shadow = f"{USER}:x:{UID}:{UID}::/tmp:/bin/sh", f"{USER}:*:19000:0:99999:7:::"
    script = PREPARE.replace("{account}", quote(account)).replace("{shadow}", quote(shadow))
    for host in HOSTS:
        checkout.on_host(host, script)
    with (checkout.folder / "hosts" / "lab.yaml").open("a") as file:
        file.write(f"ssh: {{user: {USER}}}\n")


def allow(checkout: Checkout, lines: list[str]) -> None:
    """Replace the sudoers lines of each host with those that were printed for it."""
    for host in HOSTS:
        begin = lines.index(f"# ---- {host}") + 1
        rest = lines[begin:]
        own = rest[: next((n for n, line in enumerate(rest) if line.startswith("# ----")), len(rest))]
        text = "".join(f"{line}\n" for line in own)
        checkout.on_host(host, f"printf %s {quote_text(text)} >/run/own/sudoers")


def quote_text(text: str) -> str:
    """Quote a text of several lines as one word of the shell."""
    return "'" + text.replace("'", "'\\''") + "'"
