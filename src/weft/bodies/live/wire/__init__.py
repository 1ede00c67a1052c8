"""How do processes of a run speak? One port each, TLS with both sides' certificates, messages and bulk bytes."""
