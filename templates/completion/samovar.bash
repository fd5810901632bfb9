%(complete_func)s() {
    local IFS=$'\n' typed=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]} answer kind value kept
    # Bash splits an unquoted FACTOR=LEVEL at `=`, and then replaces only the text after `=`.
    kept=${typed##*[[:space:]]}
    case $kept in --*=*) kept=${kept#*=} ;; esac
    kept=${kept%%"${kept##*=}"}
    case $word in [\'\"]*) kept= ;; esac
    answer=$(env COMP_WORDS="$typed" %(complete_var)s=bash_complete $1)
    for completion in $answer; do
        IFS=',' read -r kind value <<< "$completion"
        case $kind in
            plain) COMPREPLY+=("${value#"$kept"}") ;;
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
        esac
    done
}
complete -o nosort -o default -F %(complete_func)s %(prog_name)s
