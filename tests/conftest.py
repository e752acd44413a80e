"""Settings shared by all tests."""

from hypothesis import settings

# A failing example prints the blob that reproduces it (@reproduce_failure), so every randomised test names its seed.
settings.register_profile("p4gen", print_blob=True, deadline=None)
settings.load_profile("p4gen")
