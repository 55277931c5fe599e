// Targets that have it make the precompiled headers of others, and do nothing else.
