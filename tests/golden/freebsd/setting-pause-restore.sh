back "dev.$(driver em1).$(unit em1).fc" 3
back "dev.$(driver em2).$(unit em2).fc" 3
