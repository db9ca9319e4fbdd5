#!/usr/bin/env bash
# Counts the lines of a commit's Go files, per package and in total: code, tests,
# and the proof kit's part of the code. Without testdata; generated files have a row of
# their own.
#
#   proof/lines.sh            of HEAD
#   proof/lines.sh 02c4c7f    of another commit
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(git rev-parse --verify --quiet "${1:-HEAD}^{commit}") || { echo "lines.sh: there is no commit ${1:-HEAD}" >&2; exit 2; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git archive "$commit" | tar -x -C "$folder"
cd "$folder"
find . -name '*.go' ! -path '*/testdata/*' | sort | while read -r file; do
	echo "$(dirname "$file") $(case $file in *_gen.go) echo generated ;; *_test.go) echo test ;; *) echo code ;; esac) $(wc -l < "$file")"
done | awk '
	# The proof kit was under internal before proof existed.
	function proof(dir) { return dir ~ /^\.\/proof(\/|$)/ || dir ~ /^\.\/internal\/(bench|chaos|jetmodel|fault)(\/|$)/ || dir ~ /\/(scenario|recorded|scripted|strict|bustest|bridgetest)(\/|$)/ }
	{ n[$1, $2] += $3; sum[$2] += $3; dirs[$1]; if ($2 == "code" && proof($1)) kit += $3 }
	END {
		for (dir in dirs) printf "%-34s %7d %7d\n", substr(dir, 3) == "" ? "." : substr(dir, 3), n[dir, "code"], n[dir, "test"] | "sort"
		close("sort")
		printf "%-34s %7d %7d\n", "total", sum["code"], sum["test"]
		printf "%-34s %7d\n", "proof kit (part of code)", kit
		printf "%-34s %7d\n", "generated", sum["generated"]
	}' | { printf '%-34s %7s %7s\n' package code tests; cat; }
