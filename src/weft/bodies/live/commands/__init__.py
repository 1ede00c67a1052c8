"""How does a command reach a run on another machine? It asks the desk, over its port, with a key of its own."""
