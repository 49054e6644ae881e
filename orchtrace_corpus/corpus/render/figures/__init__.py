"""The figures of a corpus: `plan` names and describes them, `pictures` draws them as SVG."""
