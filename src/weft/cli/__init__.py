"""How do I ask? The `weft` command; each command imports what it needs, so that looking stays quick."""


def main() -> None:
    """Run the command line."""
    from weft.cli.app import app

    app(prog_name="weft")


__all__ = ["main"]
