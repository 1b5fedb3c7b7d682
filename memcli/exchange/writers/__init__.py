"""Writers of what other tools read, and of mem's own format; one file each."""
