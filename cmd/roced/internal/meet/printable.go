// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxText is the maximum length of a printed text from a peer, in characters.
const maxText = 256

// Printable makes a text from a peer safe to print: on one line, without terminal control characters.
// Unprintable characters are escaped as in strconv.QuoteToGraphic, backslashes are doubled, and texts longer
// than 256 characters end with an ellipsis.
func Printable(text string) string {
	characters := 0
	for i := range text {
		if characters++; characters > maxText {
			text = text[:i] + "…"
			break
		}
	}
	quoted := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Impossible returns EBADMSG for an invalid number from a peer.
func Impossible(field string, value any) error {
	return fmt.Errorf("the peer sent an invalid value, %s %s: %w", Printable(field), Printable(fmt.Sprint(value)), unix.EBADMSG)
}
