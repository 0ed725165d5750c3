"""The version of this package, which the wheel, saved models and pages carry."""

__version__ = "0.2.0"
