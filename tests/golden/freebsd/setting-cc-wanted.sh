cc.beta_delay=60
cc=cdg
