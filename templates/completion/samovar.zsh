#compdef %(prog_name)s
%(complete_func)s() {
    local -a answer names described
    local kind value help
    local -x COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete
    answer=("${(@f)$(%(prog_name)s)}")
    [[ $PREFIX == --*=* ]] && compset -P 1 '*='  # keep the --option= in front of its value
    for kind value help in $answer; do
        case $kind:$help in
            plain:_) names+=("$value") ;;
            plain:*) described+=("$value:$help") ;;
            dir:*) _path_files -/ ;;
            file:*) _path_files -f ;;
        esac
    done
    (( $#described )) && _describe -V commands described
    (( $#names )) && compadd -V names -a names
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
