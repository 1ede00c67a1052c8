"""Is it right? Tests lie where what they test lies in `src/weft`; whole deployments in `examples` and `docs`."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
