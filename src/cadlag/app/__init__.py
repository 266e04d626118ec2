"""The command `cadlag`: its syntax in `cli`, what each command does in a module of its own."""
