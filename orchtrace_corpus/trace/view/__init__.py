"""One lens on a trace: graph, order, lifecycle, timing, agents."""
