package show

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The terminal's alternate screen leaves what was there before, and the lines above it, as they are.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // and hide the cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	atTheTop    = "\x1b[H"
	endOfLine   = "\x1b[K\r\n" // what was there is cleared
	restOfPage  = "\x1b[J"
)

// screen is a terminal whose contents each Write replaces.
type screen struct {
	out    io.Writer
	height func() int // lines
}

func openScreen(out io.Writer) *screen {
	s := &screen{out, func() int { return heightOf(out) }}
	_, _ = io.WriteString(out, enterScreen)
	return s
}

// close shows what was there before.
func (s *screen) close() { _, _ = io.WriteString(s.out, leaveScreen) }

// Write shows a text, as many lines of it as there is room for.
func (s *screen) Write(text []byte) (int, error) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if room := s.height() - 1; room > 1 && len(lines) > room {
		lines = append(lines[:room-1:room-1], fmt.Sprintf("… and %d more", len(lines)-room+1))
	}
	_, err := io.WriteString(s.out, atTheTop+strings.Join(lines, endOfLine)+endOfLine+restOfPage)
	return len(text), err
}

// heightOf is a terminal's height in lines; 0 if it is not known.
func heightOf(out io.Writer) int {
	rows, _ := sizeOf(out)
	return rows
}

// widthOf is the number of columns of a terminal, or else that of the environment's COLUMNS; 0 if it is not known.
func widthOf(out io.Writer) int {
	if s, is := out.(*screen); is {
		out = s.out
	}
	if _, columns := sizeOf(out); columns > 0 {
		return columns
	}
	columns, _ := strconv.Atoi(os.Getenv("COLUMNS"))
	return max(0, columns)
}

// sizeOf is the size of a terminal in characters; 0 if it is not known.
func sizeOf(out io.Writer) (rows, columns int) {
	file, is := out.(*os.File)
	if !is {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Row), int(size.Col)
}
