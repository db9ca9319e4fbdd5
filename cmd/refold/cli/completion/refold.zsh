#compdef refold
# Completion of refold for zsh: source <(refold completion zsh), after compinit
_refold() {
	local line
	local -a values
	for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
		[[ -n $line ]] && values+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done
	if (( ${#values} )); then
		_describe refold values
	else
		_files
	fi
}
compdef _refold refold
