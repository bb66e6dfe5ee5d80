"""The subcommands of `signedstep`, one file each: `add(commands)` declares one, its `run(arguments)` carries it out."""
