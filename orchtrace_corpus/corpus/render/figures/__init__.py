"""The figures of a corpus, drawn from its data as SVG, one file each.

`plan` names the figures that a taxonomy calls for, `captions` says each in words, `gallery` draws any
of them. The modules of the kinds lay out: what it looks like is up to `sheet` and `render.drawing`.
"""
