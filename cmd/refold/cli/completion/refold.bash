# Completion of refold for bash: source <(refold completion bash)
_refold() {
	local current="${COMP_WORDS[COMP_CWORD]}" line
	local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
	if [[ $current == "=" ]]; then
		current=""
		words+=("")
	fi
	COMPREPLY=()
	while IFS=$'\t' read -r line _; do
		[[ $line == "$current"* ]] && COMPREPLY+=("$line")
	done < <("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null)
}
complete -o default -F _refold refold
