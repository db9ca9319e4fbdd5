package roles

import "strings"

// covers reports whether a pattern matches every subject that another pattern,
// or a subject, stands for.
func covers(pattern, subject string) bool {
	want, have := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range want {
		switch {
		case token == ">":
			return len(have) > i
		case i == len(have) || token != "*" && token != have[i] || token == "*" && have[i] == ">":
			return false
		}
	}
	return len(want) == len(have)
}

// Probe replaces the wildcards of a pattern when it is tried. No program
// accepts it as the name of a session, an instance or an effect.
const Probe = "check!"

// example returns a subject that a pattern matches, and that no daemon acts on.
func example(pattern string) string {
	tokens := strings.Split(pattern, ".")
	for i, t := range tokens {
		if t == "*" || t == ">" {
			tokens[i] = Probe
		}
	}
	return strings.Join(tokens, ".")
}
