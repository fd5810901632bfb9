"""The command line: the commands of `samovar` and `fab`, and what they print.

The modules `*_commands` declare the commands by subject. A command is a function that gets the project's
controller and the arguments, prints with the functions of the modules `show_*`, and returns an exit code.
"""
