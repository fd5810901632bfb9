800 KB droptail
