speed.em1.link*=100baseTX <full-duplex
speed.em2.link*=100baseTX <full-duplex
