"""One folder for each law that is drawn without a sampler."""
