FQ_CODEL target 5ms interval 100ms quantum 1514 limit 200 flows 1024 ECN
