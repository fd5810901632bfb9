"""The command line: the commands of `samovar` and `fab`, and what they print.

commands.py has the names, arguments and help of all commands. The modules `*_commands` implement them as
functions that take the project folder and the arguments, print, and return an exit code.
"""
