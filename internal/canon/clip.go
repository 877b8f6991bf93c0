package canon

import "unicode/utf8"

// Clip returns s where it has at most so many bytes, and else its beginning, cut between two
// characters, with an ellipsis behind it. It keeps texts that somebody else wrote from making an
// error long.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	end := most
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
