"""A class of our own in Spark's Java: a file beside this one, compiled by Janino, which Spark brings for its own code.

A jar would be a binary in the tree. Where Janino fails, Py4JError says why; who asks goes on without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

JAVA = Path(__file__).parent / "java"


def compiled(context: Any, name: str) -> Any:
    """An instance of `weft.NAME`, by its constructor without arguments."""
    jvm, gateway = context._jvm, context._gateway
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
    compiler.cook((JAVA / f"{name}.java").read_text(encoding="utf-8"))
    made = compiler.getClassLoader().loadClass(f"weft.{name}")
    no_kinds, no_words = (gateway.new_array(kind, 0) for kind in (jvm.java.lang.Class, jvm.java.lang.Object))
    return made.getDeclaredConstructor(no_kinds).newInstance(no_words)
