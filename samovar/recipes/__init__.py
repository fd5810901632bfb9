"""Read recipes (Jinja2 files with a typed header), and render the scripts of trials from them.

`header`, `recipe`, `check_names`, `catalogue` and `quoting` read recipes. `fill_settings` computes the values
of settings with `bottleneck`, `lab_devices` and `wlan`. `scripts` renders the scripts of a trial, and
`calibration_scripts` renders the measurements before the trial.
"""

from samovar.recipes.bottleneck import ETHERNET_HEADER_BYTES as ETHERNET_HEADER_BYTES
from samovar.recipes.bottleneck import PathDirection as PathDirection
from samovar.recipes.bottleneck import adapter_values as adapter_values
from samovar.recipes.bottleneck import bottleneck_values as bottleneck_values
from samovar.recipes.bottleneck import loss_states as loss_states
from samovar.recipes.calibration_scripts import IP_UDP_BYTES as IP_UDP_BYTES
from samovar.recipes.calibration_scripts import PathProbe as PathProbe
from samovar.recipes.calibration_scripts import ProbeScripts as ProbeScripts
from samovar.recipes.calibration_scripts import calibration_needs as calibration_needs
from samovar.recipes.calibration_scripts import plan_probe as plan_probe
from samovar.recipes.calibration_scripts import render_calibration as render_calibration
from samovar.recipes.calibration_scripts import sampling_s as sampling_s
from samovar.recipes.catalogue import Catalogue as Catalogue
from samovar.recipes.catalogue import digest_recipe_files as digest_recipe_files
from samovar.recipes.header import ByteCounts as ByteCounts
from samovar.recipes.header import CountPatterns as CountPatterns
from samovar.recipes.header import Header as Header
from samovar.recipes.quoting import quote as quote
from samovar.recipes.quoting import shell_environment as shell_environment
from samovar.recipes.recipe import BLOCKS as BLOCKS
from samovar.recipes.recipe import Recipe as Recipe
from samovar.recipes.recipe_filters import window_floor as window_floor
from samovar.recipes.scripts import BODY as BODY
from samovar.recipes.scripts import TrialScripts as TrialScripts
from samovar.recipes.scripts import split_finish_output as split_finish_output
from samovar.recipes.sudo_rules import SudoCommand as SudoCommand
from samovar.recipes.sudo_rules import allowed_commands as allowed_commands
from samovar.recipes.sudo_rules import lasting_commands as lasting_commands
from samovar.recipes.trial_programs import FlowEnds as FlowEnds
from samovar.recipes.trial_programs import Pace as Pace
from samovar.recipes.trial_programs import Program as Program
from samovar.recipes.trial_programs import StopRule as StopRule
from samovar.recipes.wlan import WLAN_RECIPES as WLAN_RECIPES
from samovar.recipes.wlan import air_values as air_values
