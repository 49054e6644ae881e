"""What traces say beside measures: labels, replay, comparison, costs."""
