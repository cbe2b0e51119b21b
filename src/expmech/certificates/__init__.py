"""What every mechanism stands on: plan, certificate, prepared draw, post-processing, accuracy."""
