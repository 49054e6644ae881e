"""The commands about orchestration traces."""
