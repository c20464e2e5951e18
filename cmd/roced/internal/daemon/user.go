package daemon

import (
	"os/user"
	"strconv"
	"strings"
	"unicode"
)

// UserName is a user's name, or the number of one without.
func UserName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// Printable is text without what moves a terminal's cursor: programs choose their own names.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
