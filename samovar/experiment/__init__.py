"""Experiment, testbed and configuration files: read, typed, frozen, every mistake reported at once."""

from samovar.experiment.expressions.distribution import Distribution
from samovar.experiment.expressions.formula import Formula
from samovar.experiment.expressions.formula_values import Scope, computed_text
from samovar.experiment.flow_members import Member, hosts_of, members_of
from samovar.experiment.keys.attributes import ARRIVALS_FIELDS, FLOW_FIELDS, PATH_FIELDS, STOP_FIELDS
from samovar.experiment.keys.config_file import Config
from samovar.experiment.keys.devices import PARAMETERS as DEVICE_PARAMETERS
from samovar.experiment.keys.devices import Adapter, with_device
from samovar.experiment.keys.experiment_file import Capture, Expect, Experiment, Order, Part
from samovar.experiment.keys.factors import NOT_OF_HOSTS, SETTINGS
from samovar.experiment.keys.field_types import Positive, Sentence, Strict, Word, choice, scalar
from samovar.experiment.keys.levels import Factor, Level
from samovar.experiment.keys.notify import Notify, Occasion
from samovar.experiment.keys.path_keys import NetworkPath, PathClass, least_burst_packets
from samovar.experiment.keys.power_keys import Ipmi, Power
from samovar.experiment.keys.recipe_parameters import parse_parameter, parse_type
from samovar.experiment.keys.study_file import FOLDER as STUDIES
from samovar.experiment.keys.study_file import Section, StudyReport, load_study_report
from samovar.experiment.keys.testbed_file import Bottleneck, Host, Lab, Link, NetworkInterface, Ssh, Testbed
from samovar.experiment.keys.traffic_keys import Arrivals, Flow, Logger, Stop
from samovar.experiment.keys.values import Buffer, Directional, DistributionText, PerHost, Value
from samovar.experiment.keys.verdict_thresholds import Thresholds
from samovar.experiment.layers.overrides import parse_overrides
from samovar.experiment.layers.precedence import HostSetting, LayerValue, SettingsByHost, resolve_settings
from samovar.experiment.load import (
    LoadOptions,
    ResolvedExperiment,
    apply_profile,
    list_experiments,
    list_testbeds,
    load_config,
    load_experiment,
    load_testbed,
    read_experiment,
    resolve_experiment,
)
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue
from samovar.experiment.shortest_path import Hop, shortest_path
from samovar.experiment.treatment_rules import (
    Treatment,
    included_treatments,
    treatments_of,
    wanted_labels,
)

__all__ = [
    "ARRIVALS_FIELDS",
    "DEVICE_PARAMETERS",
    "FLOW_FIELDS",
    "NOT_OF_HOSTS",
    "PATH_FIELDS",
    "SETTINGS",
    "STOP_FIELDS",
    "STUDIES",
    "Adapter",
    "Arrivals",
    "Bottleneck",
    "Buffer",
    "Capture",
    "Config",
    "Directional",
    "Distribution",
    "DistributionText",
    "Expect",
    "Experiment",
    "Factor",
    "Flow",
    "Formula",
    "Hop",
    "Host",
    "HostSetting",
    "Ipmi",
    "Lab",
    "LayerValue",
    "Level",
    "Link",
    "LoadOptions",
    "Logger",
    "Member",
    "NetworkInterface",
    "NetworkPath",
    "Notify",
    "Occasion",
    "Order",
    "ParameterInfo",
    "Part",
    "PathClass",
    "PerHost",
    "Positive",
    "Power",
    "RecipeCatalogue",
    "ResolvedExperiment",
    "Scope",
    "Section",
    "Sentence",
    "SettingsByHost",
    "Ssh",
    "Stop",
    "Strict",
    "StudyReport",
    "Testbed",
    "Thresholds",
    "Treatment",
    "Value",
    "Word",
    "apply_profile",
    "choice",
    "computed_text",
    "hosts_of",
    "included_treatments",
    "least_burst_packets",
    "list_experiments",
    "list_testbeds",
    "load_config",
    "load_experiment",
    "load_study_report",
    "load_testbed",
    "members_of",
    "parse_overrides",
    "parse_parameter",
    "parse_type",
    "read_experiment",
    "resolve_experiment",
    "resolve_settings",
    "scalar",
    "shortest_path",
    "treatments_of",
    "wanted_labels",
    "with_device",
]
