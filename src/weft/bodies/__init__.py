"""Who carries the machines? Each body only feeds inputs and performs effects."""
