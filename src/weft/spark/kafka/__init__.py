"""How does Weft speak with Kafka? Jars, a broker for trials, and a client for topics and offsets."""
