shaping.ipfw.0004[1-9].*
