"""Property tests take as long as a busy machine makes them take: no deadline for one example."""

from hypothesis import settings

settings.register_profile("no_deadline")
settings.load_profile("no_deadline")
