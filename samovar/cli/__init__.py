"""The commands of samovar and what they print.

commands.py has their names, arguments and help, for `samovar` and for `fab`. Each module `*_commands` holds
what a group of them does: functions that take the project folder and their arguments, print, and return an
exit code.
"""
