"""YAML files as this project writes them: read strictly, every value with its place."""
