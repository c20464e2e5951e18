// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The terminal's alternate screen preserves the previous contents and the scroll-back buffer.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // and hide the cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	atTheTop    = "\x1b[H"
	endOfLine   = "\x1b[K\r\n" // clear the rest of the line
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

// close restores the previous contents.
func (s *screen) close() { _, _ = io.WriteString(s.out, leaveScreen) }

// Write shows a text, truncated to the height of the terminal.
func (s *screen) Write(text []byte) (int, error) {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if room := s.height() - 1; room > 1 && len(lines) > room {
		lines = append(lines[:room-1:room-1], fmt.Sprintf("… and %d more", len(lines)-room+1))
	}
	_, err := io.WriteString(s.out, atTheTop+strings.Join(lines, endOfLine)+endOfLine+restOfPage)
	return len(text), err
}

// heightOf returns the height of a terminal in lines; 0 if unknown.
func heightOf(out io.Writer) int {
	rows, _ := sizeOf(out)
	return rows
}

// widthOf returns the width of a terminal in columns, otherwise that of the environment variable COLUMNS; 0
// if unknown.
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

// sizeOf returns the size of a terminal in characters; 0 if unknown.
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
