"""The parts of ../differential.py: random tile programs, their values in float64, and what runs them."""
