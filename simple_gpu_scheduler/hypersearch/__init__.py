"""Parameters -> command lines. Pure; how its options are typed is the command line's."""
