# Completion of refold for fish: refold completion fish > ~/.config/fish/completions/refold.fish
function __refold_complete
	set -l words (commandline -opc)
	set -l values ($words[1] complete -- $words[2..-1] "$(commandline -ct)" 2>/dev/null)
	if set -q values[1]
		printf '%s\n' $values
	else
		__fish_complete_path (commandline -ct)
	end
end
complete -c refold -f -a '(__refold_complete)'
