"""Recipes: Jinja2 files with a typed header, and the scripts that are rendered from them."""

from samovar.recipes.adapter_values import adapter_values
from samovar.recipes.bottleneck import (
    ETHERNET_HEADER_BYTES,
    PathDirection,
    bottleneck_values,
    loss_states,
)
from samovar.recipes.calibration_scripts import (
    IP_UDP_BYTES,
    CalibrationScripts,
    PathProbe,
    calibration_needs,
    plan_probe,
    render_calibration,
    sampling_s,
)
from samovar.recipes.catalogue import FAMILY, Catalogue
from samovar.recipes.counter_scripts import split_finish_output
from samovar.recipes.flow_ends import FlowEnds, StopRule
from samovar.recipes.generator_watch import NO_LIMITS, AbortLimits
from samovar.recipes.header import ByteCounts, CountPatterns, Header, Parameter
from samovar.recipes.processes import Program
from samovar.recipes.quoting import quote
from samovar.recipes.recipe import BLOCKS, Recipe
from samovar.recipes.recipe_files import digest_recipe_files
from samovar.recipes.scripts import BODY, TrialScripts
from samovar.recipes.sudo_rules import Login, SudoCommand, allowed_commands, lasting_commands
from samovar.recipes.window_scripts import (
    WindowProbe,
    WindowScripts,
    fitted_buffers,
    fitting,
    forgetting,
    render_window_probe,
    window_probes,
    window_share,
)

__all__ = [
    "BLOCKS",
    "BODY",
    "ETHERNET_HEADER_BYTES",
    "FAMILY",
    "IP_UDP_BYTES",
    "NO_LIMITS",
    "AbortLimits",
    "ByteCounts",
    "CalibrationScripts",
    "Catalogue",
    "CountPatterns",
    "FlowEnds",
    "Header",
    "Login",
    "Parameter",
    "PathDirection",
    "PathProbe",
    "Program",
    "Recipe",
    "StopRule",
    "SudoCommand",
    "TrialScripts",
    "WindowProbe",
    "WindowScripts",
    "adapter_values",
    "allowed_commands",
    "bottleneck_values",
    "calibration_needs",
    "digest_recipe_files",
    "fitted_buffers",
    "fitting",
    "forgetting",
    "lasting_commands",
    "loss_states",
    "plan_probe",
    "quote",
    "render_calibration",
    "render_window_probe",
    "sampling_s",
    "split_finish_output",
    "window_probes",
    "window_share",
]
