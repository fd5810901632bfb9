"""Experiment, testbed and configuration files: read, typed, frozen, every mistake reported at once."""

from samovar.experiment.expressions.formula import Formula
from samovar.experiment.expressions.formula_values import Scope
from samovar.experiment.flow_members import Member, hosts_of, members_of
from samovar.experiment.keys.config_file import Config
from samovar.experiment.keys.experiment_file import (
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
from samovar.experiment.keys.recipe_parameters import parse_parameter
from samovar.experiment.keys.testbed_file import Bottleneck, Host, Lab, Link, NetworkInterface, Ssh, Testbed
from samovar.experiment.layers.overrides import parse_overrides
from samovar.experiment.layers.precedence import (
    Given,
    Origin,
    ResolvedSetting,
    SettingLayers,
    layers_for,
    level_of,
    resolve_setting,
)
from samovar.experiment.load import (
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
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue
from samovar.experiment.shortest_path import Hop, shortest_path
from samovar.experiment.treatment_rules import treatments_of

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
