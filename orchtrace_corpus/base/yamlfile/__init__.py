"""YAML as text with places: read strictly, written in canonical form, edited in place. The only user of PyYAML."""

from orchtrace_corpus.base.yamlfile import codes as codes
