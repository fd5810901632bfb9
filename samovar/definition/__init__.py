"""Experiment, testbed and configuration files: read, typed, frozen, every mistake reported at once."""

from samovar.definition.catalogue import ParameterInfo, RecipeCatalogue
from samovar.definition.config import Config
from samovar.definition.experiment import (
    Capture,
    Expect,
    Experiment,
    Flow,
    Logger,
    NetworkPath,
    Order,
    Part,
)
from samovar.definition.load import (
    Study,
    apply_profile,
    list_experiments,
    list_testbeds,
    load_config,
    load_experiment,
    load_study,
    load_testbed,
    read_experiment,
)
from samovar.definition.parameters import parse_parameter
from samovar.definition.testbed import Bottleneck, Host, Lab, Link, NetworkInterface, Ssh, Testbed
from samovar.definition.topology import Hop, shortest_path

__all__ = [
    "Bottleneck",
    "Capture",
    "Config",
    "Expect",
    "Experiment",
    "Flow",
    "Hop",
    "Host",
    "Lab",
    "Link",
    "Logger",
    "NetworkInterface",
    "NetworkPath",
    "Order",
    "ParameterInfo",
    "Part",
    "RecipeCatalogue",
    "Ssh",
    "Study",
    "Testbed",
    "apply_profile",
    "list_experiments",
    "list_testbeds",
    "load_config",
    "load_experiment",
    "load_study",
    "load_testbed",
    "parse_parameter",
    "read_experiment",
    "shortest_path",
]
