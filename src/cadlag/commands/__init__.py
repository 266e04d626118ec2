"""What the commands of `cadlag` do, without the syntax of their options, which is in `cadlag.cli`."""
