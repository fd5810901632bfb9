"""The commands of samovar and what they print.

commands.py has the names, arguments and help of all commands, for `samovar` and for `fab`. The modules
`*_commands` implement them: functions that take the project folder and the arguments, print, and return an
exit code.
"""
