function %(complete_func)s
    # The --option= in front of a value is a part of the word that fish completes.
    set -l before (string match -r -- '^--[^=]+=' (commandline -ct))
    set -lx COMP_WORDS (commandline -cp)
    set -lx COMP_CWORD (commandline -t)
    for completion in (env %(complete_var)s=fish_complete %(prog_name)s)
        set -l parts (string split -m 1 -- , $completion)
        switch $parts[1]
            case dir
                __fish_complete_directories $parts[2]
            case file
                __fish_complete_path $parts[2]
            case plain
                echo -- "$before$parts[2]"
        end
    end
end
complete --no-files --keep-order --command %(prog_name)s --arguments "(%(complete_func)s)"
