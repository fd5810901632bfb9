"""samovar: TCP experiments on real testbeds, from a YAML definition to a PDF bundle."""

__version__ = "0.1.0"
