package planner

// IsName reports whether s is 1 to NameBytesMax of A-Za-z0-9_-: every provider
// accepts that as a tool's name, and a subject as a token.
func IsName(s string) bool {
	if s == "" || len(s) > NameBytesMax {
		return false
	}
	for i := range len(s) {
		if !isNameByte(s[i]) {
			return false
		}
	}
	return true
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// IsToolID reports whether s can be a tool_id. Every tool_name can.
func IsToolID(s string) bool { return isDotted(s, ToolIDBytesMax) }

// isDotted reports whether s is 1 to max bytes of names joined by single dots.
func isDotted(s string, max int) bool {
	if s == "" || len(s) > max {
		return false
	}
	for i := range len(s) {
		switch {
		case isNameByte(s[i]):
		case s[i] != '.', i == 0, i == len(s)-1, s[i-1] == '.':
			return false
		}
	}
	return true
}

// clipMark ends a text that was cut.
const clipMark = "..."

// clip shortens s to at most max bytes without cutting a character in two.
func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	end := max - len(clipMark)
	for end > 0 && s[end]&0xC0 == 0x80 {
		end--
	}
	return s[:end] + clipMark
}
