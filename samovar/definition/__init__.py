"""Experiment, testbed and configuration files: read, typed, frozen, every mistake reported at once."""

from samovar.definition.catalogue import ParameterInfo, RecipeCatalogue
from samovar.definition.config import Config
from samovar.definition.experiment import (
    Arrivals,
    Capture,
    Directional,
    Expect,
    Experiment,
    Factor,
    Flow,
    Level,
    Logger,
    NetworkPath,
    Order,
    Part,
    PathClass,
    PerHost,
    Stop,
)
from samovar.definition.formula import Formula
from samovar.definition.formula_values import Scope
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
from samovar.definition.traffic import Member, hosts_of, members_of
from samovar.definition.treatments import treatments_of

__all__ = [
    "Arrivals",
    "Asked",
    "Bottleneck",
    "Capture",
    "Config",
    "Directional",
    "Expect",
    "Experiment",
    "Factor",
    "Flow",
    "Formula",
    "Given",
    "Hop",
    "Host",
    "Lab",
    "Level",
    "Link",
    "Logger",
    "Member",
    "NetworkInterface",
    "NetworkPath",
    "Order",
    "Origin",
    "ParameterInfo",
    "Part",
    "PathClass",
    "PerHost",
    "RecipeCatalogue",
    "ResolvedSetting",
    "Scope",
    "SettingLayers",
    "Ssh",
    "Stop",
    "Study",
    "Testbed",
    "apply_profile",
    "hosts_of",
    "layers_for",
    "level_of",
    "list_experiments",
    "list_testbeds",
    "load_config",
    "load_experiment",
    "load_study",
    "load_testbed",
    "members_of",
    "parse_overrides",
    "parse_parameter",
    "read_experiment",
    "resolve_setting",
    "shortest_path",
    "treatments_of",
]
