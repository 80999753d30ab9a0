"""The options of commands, one file for each section of the help.

A file declares its section's options and turns what was typed into the section's value. The type of the value belongs
to the room that uses it. A new option is added to the file of its section and to that type, and is used in that room.
"""
