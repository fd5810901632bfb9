turn "dev.$(driver em1).$(unit em1).fc" 0
turn "dev.$(driver em2).$(unit em2).fc" 0
