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
    Asked,
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
from samovar.definition.origins import (
    Given,
    Origin,
    ResolvedSetting,
    SettingLayers,
    layers_for,
    level_of,
    resolve_setting,
)
from samovar.definition.overrides import parse_overrides
from samovar.definition.parameters import parse_parameter
from samovar.definition.testbed import Bottleneck, Host, Lab, Link, NetworkInterface, Ssh, Testbed
from samovar.definition.topology import Hop, shortest_path

__all__ = [
    "Asked",
    "Bottleneck",
    "Capture",
    "Config",
    "Expect",
    "Experiment",
    "Flow",
    "Given",
    "Hop",
    "Host",
    "Lab",
    "Link",
    "Logger",
    "NetworkInterface",
    "NetworkPath",
    "Order",
    "Origin",
    "ParameterInfo",
    "Part",
    "RecipeCatalogue",
    "ResolvedSetting",
    "SettingLayers",
    "Ssh",
    "Study",
    "Testbed",
    "apply_profile",
    "layers_for",
    "level_of",
    "list_experiments",
    "list_testbeds",
    "load_config",
    "load_experiment",
    "load_study",
    "load_testbed",
    "parse_overrides",
    "parse_parameter",
    "read_experiment",
    "resolve_setting",
    "shortest_path",
]
