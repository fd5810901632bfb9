"""The operating systems that hosts may run: recipe folders, packages, and the congestion controls they ship.

Parameters of congestion controls on Linux 4.4 to 6.12 are those (module_param() in net/ipv4/tcp_NAME.c) that
have a file in /sys/module; on FreeBSD 11 to 14 they are sysctls net.inet.tcp.cc.NAME. Other congestion
controls, such as bbr of a patched kernel, are not listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OperatingSystem:
    """An operating system. `folders` below templates/ have its recipes; earlier folders take precedence.

    `packages` maps programs of generators to packages, and `install` is the command that installs a package.
    `ccs` are its congestion controls, where `reno` also means FreeBSD's newreno; `cc_parameters` are the
    parameters of all of them.
    """

    title: str
    folders: tuple[str, ...]
    packages: Mapping[str, str]
    install: str
    ccs: frozenset[str]
    cc_parameters: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PACKAGES = {name: name for name in ("iperf", "iperf3", "nuttcp", "python3")}

OPERATING_SYSTEMS: Mapping[str, OperatingSystem] = {
    "linux": OperatingSystem(
        "Linux",
        ("linux", "posix"),
        _PACKAGES,
        "apt install",
        ccs=_words(
            "bic cdg cubic dctcp highspeed htcp hybla illinois lp nv reno scalable vegas veno westwood yeah"
        ),
        cc_parameters=_words(
            # of bic and cubic
            "beta fast_convergence initial_ssthresh low_window max_increment smooth_part bic_scale "
            "tcp_friendliness hystart hystart_ack_delta hystart_ack_delta_us hystart_low_window "
            # of cdg
            "backoff_beta backoff_factor window hystart_detect use_ineff use_shadow use_tolerance "
            # of dctcp, htcp, hybla, nv and vegas
            "dctcp_alpha_on_init dctcp_clamp_alpha_on_loss dctcp_shift_g rtt0 alpha "
            "use_bandwidth_switch use_rtt_scaling nv_min_cwnd nv_pad nv_reset_period gamma"
        ),
    ),
    "freebsd": OperatingSystem(
        "FreeBSD",
        ("freebsd", "posix"),
        {**_PACKAGES, "nttcp": "nttcp"},
        "pkg install",
        ccs=_words("cdg chd cubic dctcp hd htcp reno vegas"),
        cc_parameters=_words(
            # of cdg
            "alpha_inc beta_delay beta_loss exp_backoff_scale smoothing_factor "
            "loss_compete_consec_cong loss_compete_hold_backoff "
            # of chd, hd, dctcp, htcp, newreno and vegas
            "loss_fair pmax queue_min queue_threshold use_max alpha ect1 shift_g slowstart "
            "adaptive_backoff rtt_scaling beta beta_ecn"
        ),
    ),
}


def canonical_cc(name: str) -> str:
    """Return `reno` for newreno, which is FreeBSD's name for Reno; return any other name unchanged."""
    return "reno" if name == "newreno" else name
