package meet

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxText bounds what is shown of one text of a peer, in characters.
const maxText = 256

// Printable makes a peer's text fit to be shown: it stays on its line, and tells a terminal nothing.
// What does not print becomes an escape of strconv.QuoteToGraphic, a backslash two, and a text
// above 256 characters ends with an ellipsis.
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

// Impossible is the error of a peer's number that cannot be. It is EBADMSG.
func Impossible(field string, value any) error {
	return fmt.Errorf("the peer says %s %s, which cannot be: %w", Printable(field), Printable(fmt.Sprint(value)), unix.EBADMSG)
}
