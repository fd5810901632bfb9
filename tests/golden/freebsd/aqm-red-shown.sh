200 sl.
RED w_q 0.001999 min_th 50 max_th 150 max_p 0.099991
