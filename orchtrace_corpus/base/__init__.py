"""The ground that both wings stand on."""
