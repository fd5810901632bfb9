200 sl. droptail
