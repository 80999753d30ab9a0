"""The options of commands, a file for each section of the help.

A file declares its section's options and makes the section's value from what was typed. The value is a word of the room
that uses it. A new option is added to the file of its section and to that value, and is used in that room.
"""
