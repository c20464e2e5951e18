// SPDX-License-Identifier: Apache-2.0

// Command recording draws docs/terminal.svg, a recording of README's first commands in a terminal: make recording.
//
//	main.go    the commands; records them and writes the drawing
//	record.go  runs a command in a pseudoterminal and reads its output, with times
//	rows.go    the rows of the screen that a line of output fills
//	film.go    when each row appears
//	svg.go     the drawing
//
// The text is one strip. The screen is a window on it. The drawing animates three positions: that of the strip, that of
// the cursor with a cover over everything behind it, and that of the title. CSS keyframes do that, because GitHub
// removes scripts. Without animation, and for readers who prefer reduced motion, the drawing shows the last frame.
//
// Times are those of the recording with two changes: longer pauses are shortened, and rows that were written at once
// appear one by one. The drawing depends on the recording only.
//
// Left out: colours and cursor movements. Their escape sequences are removed.
package main
