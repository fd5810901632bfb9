knob "dev.$(driver em1).$(unit em1).fc" pause.em1
knob "dev.$(driver em2).$(unit em2).fc" pause.em2
