"""Recipes: Jinja2 files with a typed header, and the scripts that are rendered from them.

`header`, `recipe`, `catalogue` and `quoting` read recipes; the other modules fill them in: `fill_settings`
and `bottleneck` the settings of a host, `trial_programs` and `scripts` everything that a trial runs,
`calibration_scripts` what is measured before it.
"""

from samovar.recipes.bottleneck import (
    ETHERNET_HEADER_BYTES,
    PathDirection,
    adapter_values,
    bottleneck_values,
    loss_states,
)
from samovar.recipes.calibration_scripts import (
    IP_UDP_BYTES,
    PathProbe,
    ProbeScripts,
    calibration_needs,
    plan_probe,
    render_calibration,
    sampling_s,
)
from samovar.recipes.catalogue import Catalogue, digest_recipe_files
from samovar.recipes.header import ByteCounts, CountPatterns, Header, Parameter
from samovar.recipes.quoting import quote, shell_environment, window_floor
from samovar.recipes.recipe import BLOCKS, Recipe
from samovar.recipes.scripts import BODY, TrialScripts, split_finish_output
from samovar.recipes.sudo_rules import (
    SudoCommand,
    allowed_commands,
    lasting_commands,
)
from samovar.recipes.trial_programs import NO_LIMITS, AbortLimits, FlowEnds, Program, StopRule

__all__ = [
    "BLOCKS",
    "BODY",
    "ETHERNET_HEADER_BYTES",
    "IP_UDP_BYTES",
    "NO_LIMITS",
    "AbortLimits",
    "ByteCounts",
    "Catalogue",
    "CountPatterns",
    "FlowEnds",
    "Header",
    "Parameter",
    "PathDirection",
    "PathProbe",
    "ProbeScripts",
    "Program",
    "Recipe",
    "StopRule",
    "SudoCommand",
    "TrialScripts",
    "adapter_values",
    "allowed_commands",
    "bottleneck_values",
    "calibration_needs",
    "digest_recipe_files",
    "lasting_commands",
    "loss_states",
    "plan_probe",
    "quote",
    "render_calibration",
    "sampling_s",
    "shell_environment",
    "split_finish_output",
    "window_floor",
]
