from 1.0/s
