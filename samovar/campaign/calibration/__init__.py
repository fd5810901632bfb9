"""Measurements of a testbed that are made once per campaign: paths and receive windows."""
