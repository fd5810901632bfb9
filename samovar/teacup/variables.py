"""The variables of TEACUP 1.1 and of its later repository (2021), with their counterparts in samovar.

docs/how-to/come-from-teacup.md has the same list.
"""

from __future__ import annotations

from collections.abc import Mapping

NOTHING = "—"
Counterpart = tuple[str, str]
"""The keys that replace a variable, or NOTHING, and a remark."""
CONVENTION = "imported with the variables that use its values"
NO_BOOT = NOTHING, "samovar does not choose what a host boots"
NO_SWITCH = NOTHING, "addresses, routes and VLANs must exist already"
NO_PASSWORD = (
    NOTHING,
    "not copied: a command of `power` can read it from a file of mode 600",
)
_OF_CONFIG: Mapping[str, Counterpart] = {
    "script_path": (NOTHING, "samovar is installed, not put on a path"),
    "debug_level": (NOTHING, "R's messages are always shown when R fails"),
    "router": ("hosts: role: router", "its queues are at the egress of the interface to each side"),
    "hosts": ("hosts: role: sender, receiver", "senders are the hosts on the source side of the first queue"),
    "host_internal_ip": ("hosts: interfaces: address", "with /24, as TEACUP assumes; name the interfaces"),
    "host_os": ("hosts: os", "linux or freebsd; Windows and macOS have no recipes"),
    "linux_kern_router": NO_BOOT,
    "linux_kern_hosts": NO_BOOT,
    "os_partition": NO_BOOT,
    "tftpserver": NO_BOOT,
    "tftpboot_dir": NO_BOOT,
    "force_reboot": (NOTHING, "hosts are rebooted only for settings that need it, and restored"),
    "boot_timeout": ("hosts: boot_timeout", ""),
    "do_power_cycle": ("hosts: power", "a host that does not return is power-cycled if it has `power`"),
    "power_ctrl_type": ("hosts: power: on, off, cycle", "any command, or IPMI"),
    "host_power_ctrlport": ("hosts: power: outlet", "written as a comment; write the command yourself"),
    "power_admin_name": NO_PASSWORD,
    "power_admin_pw": NO_PASSWORD,
    "config_topology": NO_SWITCH,
    "topology_switch": NO_SWITCH,
    "topology_switch_port_prefix": NO_SWITCH,
    "topology_switch_port_offset": NO_SWITCH,
    "linkspeed": ("settings: speed.rate", "for all hosts; auto leaves the card as it is"),
    "host_linkspeed": ("hosts: settings: speed.rate", "overrides the speed for all hosts"),
    "check_connectivity": ("samovar check", "each run checks it as well"),
    "check_config": ("samovar plan", "an experiment is always checked"),
    "max_time_diff": ("config.yaml: clock_tolerance", "a setting of the controller, so it is only printed"),
    "test_id": ("experiment", "the name of the file; a campaign's folder has the time"),
    "remote_dir": (NOTHING, "a folder for each trial below /tmp/samovar"),
    "bc_ping_enable": ("loggers: beacons", ""),
    "bc_ping_rate": ("loggers: beacons: interval", ""),
    "bc_ping_address": ("loggers: beacons: address", "a multicast group; broadcast is not supported"),
    "pcap_snaplen": ("captures: snaplen", "at least 96 bytes, or headers would be cut; 0 becomes 65535"),
    "tcpdump_logger": ("captures", ""),
    "tcpstats_logger": ("loggers: tcp-state", ""),
    "linux_tcp_logger": ("loggers: tcp-state", "web10g: tcp-info, ttprobe: tcp-probe; siftr on FreeBSD"),
    "ttprobe_output_mode": (NOTHING, "traces are CSV"),
    "ttprobe_direction": (NOTHING, "tcp-probe records received segments"),
    "web10g_poll_interval": ("loggers: tcp-state: interval", "interval between samples of TCP_INFO"),
    "host_TCP_algos": ("cc: {HOST: …}", "host0, host1 … become a level for each host"),
    "host_TCP_algo_params": ("cc.<parameter>: {HOST: …}", "set by each level that selects the algorithm"),
    "host_init_custom_cmds": ("settings: command.run: {HOST: …}", "add their undo commands to command.undo"),
    "router_queues": ("path", "queues with attach_to_queue become classes"),
    "traffic_gens": ("traffic", ""),
    "duration": ("traffic: duration", ""),
    "runs": ("replicates", ""),
    "ECN": ("settings: tcp.ecn", "of the hosts that send or receive"),
    "TCP_algos": ("factors: cc", "of the hosts that send"),
    "delays": ("factors: path.delay", "one way, before the queue instead of after it"),
    "loss_rates": ("factors: path.loss", "a share becomes a percentage"),
    "bandwidths": ("factors: path.rate", ""),
    "aqms": ("factors: path.aqm", ""),
    "buffer_sizes": ("factors: path.buffer", "with the unit of the queue discipline"),
    "dash_rates": ("traffic.<flow>.rate", CONVENTION),
    "dash_rates_str": (NOTHING, CONVENTION),
    "inc_content_sizes": ("traffic.<flow>.response", CONVENTION),
    "inc_content_sizes_str": (NOTHING, CONVENTION),
    "inc_periods": ("traffic.<flow>.period", CONVENTION),
    "chunksize_mpd": ("traffic.<flow>.cycle", CONVENTION),
    "parameter_list": ("factors", "each becomes a factor"),
    "variable_defaults": ("path, traffic, settings", "inserted into the values that refer to them"),
    "vary_parameters": ("factors", "all combinations; `runs` becomes replicates"),
}  # fmt: skip
VARIABLES: Mapping[str, Counterpart] = {f"TPCONF_{name}": one for name, one in _OF_CONFIG.items()} | {
    "env.user": ("ssh: user", ""),
    "env.password": (NOTHING, "not copied: log in with a key (ssh: key) or an agent"),
    "env.shell": (NOTHING, "samovar's scripts are for a POSIX shell"),
    "env.timeout": (
        "config.yaml: ssh: connect_timeout",
        "a setting of the controller, so it is only printed",
    ),
    "env.pool_size": (NOTHING, "all hosts work at the same time"),
}


def counterpart_of(name: str) -> Counterpart | None:
    """Return the counterpart of a variable and a remark; None if TEACUP has no such variable."""
    is_list_of_cdg = name.startswith("TPCONF_cdg_")
    return ("cc.<parameter>", CONVENTION) if is_list_of_cdg else VARIABLES.get(name)
