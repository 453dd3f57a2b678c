"""The commands of `penultimate`, each declared beside what it does; every module here lists its COMMANDS."""
