// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"os/user"
	"strconv"
	"strings"
	"unicode"
)

// UserName returns the name of a user, or the uid if it has none.
func UserName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// Printable replaces characters that control a terminal, because programs choose their own names.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
