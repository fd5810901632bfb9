"""samovar: TCP experiments on real testbeds, from a YAML definition to a PDF bundle."""

__version__ = "0.2.0"
