"""Names and parameters of the congestion controls that Linux and FreeBSD ship.

Linux 4.4 to 6.12: parameters (module_param() in net/ipv4/tcp_NAME.c) that have a file in /sys/module. FreeBSD
11 to 14: sysctl net.inet.tcp.cc.NAME. Other congestion controls, such as bbr of a patched kernel, are not
listed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

CC_PARAMETERS: Mapping[str, Mapping[str, Collection[str]]] = {
    "linux": {
        "bic": ["beta", "fast_convergence", "initial_ssthresh", "low_window", "max_increment", "smooth_part"],
        "cdg": [
            *("backoff_beta", "backoff_factor", "window"),
            *("hystart_detect", "use_ineff", "use_shadow", "use_tolerance"),
        ],
        "cubic": [
            *("beta", "bic_scale", "fast_convergence", "initial_ssthresh", "tcp_friendliness"),
            *("hystart", "hystart_ack_delta", "hystart_ack_delta_us", "hystart_detect", "hystart_low_window"),
        ],
        "dctcp": ["dctcp_alpha_on_init", "dctcp_clamp_alpha_on_loss", "dctcp_shift_g"],
        "htcp": ["use_bandwidth_switch", "use_rtt_scaling"],
        "hybla": ["rtt0"],
        "nv": ["nv_min_cwnd", "nv_pad", "nv_reset_period"],
        "vegas": ["alpha", "beta", "gamma"],
        **dict.fromkeys(("highspeed", "illinois", "lp", "reno", "scalable", "veno", "westwood", "yeah"), ()),
    },
    "freebsd": {
        "cdg": [
            "alpha_inc",
            "beta_delay",
            "beta_loss",
            "exp_backoff_scale",
            "loss_compete_consec_cong",
            "loss_compete_hold_backoff",
            "smoothing_factor",
        ],
        "chd": ["loss_fair", "pmax", "queue_min", "queue_threshold", "use_max"],
        "cubic": [],
        "dctcp": ["alpha", "ect1", "shift_g", "slowstart"],
        "hd": ["pmax", "queue_min", "queue_threshold"],
        "htcp": ["adaptive_backoff", "rtt_scaling"],
        "reno": ["beta", "beta_ecn"],
        "vegas": ["alpha", "beta"],
    },
}
"""The parameters of each congestion control, by system. `reno` also means FreeBSD's newreno."""


def canonical_cc(name: str) -> str:
    """Return `reno` for newreno, which is FreeBSD's name for Reno; return any other name unchanged."""
    return "reno" if name == "newreno" else name


def unknown_to_all(parameter: str) -> bool:
    """Return whether no congestion control in CC_PARAMETERS has a parameter of this name."""
    return all(parameter not in names for known in CC_PARAMETERS.values() for names in known.values())
