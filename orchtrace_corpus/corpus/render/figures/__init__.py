"""The figures of a corpus: `plan` names them and says each in words, `pictures` draws them as SVG."""
