from 50.0/s
