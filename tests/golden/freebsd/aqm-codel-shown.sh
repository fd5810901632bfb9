200 sl.
AQM CoDel target 5ms interval 100ms NoECN
