pause.em1=0
pause.em2=0
