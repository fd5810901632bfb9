shaping.ipfw.0005[1-9].*
