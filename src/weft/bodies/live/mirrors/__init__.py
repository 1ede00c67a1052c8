"""How do streams, fences and checkpoints reach sites that share no folder? Over the port, as bulk bytes."""
