"""Which way does a stream take between sites, and how long is it?"""
