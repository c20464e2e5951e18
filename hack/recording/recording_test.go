// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// drawing is what the tests read of a file.
type drawing struct {
	style  string
	texts  []string          // of the titles and rows
	places map[string]string // the static positions of the tracks
}

func parse(t *testing.T, svg []byte) drawing {
	t.Helper()
	d := drawing{places: map[string]string{}}
	element := ""
	for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			element = token.Name.Local
			if element == "g" {
				d.places[token.Attr[0].Value] = token.Attr[1].Value
			}
		case xml.EndElement:
			element = ""
		case xml.CharData:
			switch element {
			case "style":
				d.style = string(token)
			case "text":
				d.texts = append(d.texts, string(token))
			}
		}
	}
}

// example returns a film of two commands, with a row of its own for each of the output's peculiarities.
func example() *film {
	var f film
	lines := []line{
		{time.Millisecond, "\x1b]0;title\x07\x1b[1;31mred\x1b[0m <a> & \"b\" 'c'\r\n"},
		{time.Millisecond, "\r\n"},
		{2 * time.Hour, "10 %\r20 %\r  done\x1b[K\r\n"},
	}
	for i := range 2 * screenRows {
		lines = append(lines, line{2 * time.Hour, fmt.Sprintf("row %d\r\n", i)})
	}
	f.add("$ ", "first <command>", lines)
	f.add("$ ", "second 'command'", []line{{time.Second, "without an end"}})
	f.end("$ ")
	return &f
}

// TestDrawing: the drawing is XML with all rows, without escape sequences, and the same each time.
func TestDrawing(t *testing.T) {
	t.Parallel()
	svg, err := example().svg()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"first <command>", "second 'command'", "$ first <command>", `red <a> & "b" 'c'`, "done"}
	for i := range 2 * screenRows {
		want = append(want, fmt.Sprintf("row %d", i))
	}
	want = append(want, "$ second 'command'", "without an end", "$")
	if d := parse(t, svg); !slices.Equal(d.texts, want) {
		t.Errorf("texts %q, want %q", d.texts, want)
	}
	if again, err := example().svg(); err != nil || !bytes.Equal(again, svg) {
		t.Errorf("two drawings of one recording differ: %v", err)
	}
}

// TestAnimation: the keyframes of each track have increasing times from 0, and the last one is the static position.
func TestAnimation(t *testing.T) {
	t.Parallel()
	f := example()
	svg, err := f.svg()
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, svg)
	_, animated, _ := strings.Cut(d.style, "@media (prefers-reduced-motion: no-preference) {")
	if strings.Count(d.style, "animation:") != 3 || strings.Count(animated, "animation:") != 3 {
		t.Errorf("not three animations, all for readers who have no preference:\n%s", d.style)
	}
	for _, name := range []string{"strip", "cursor", "titles"} {
		_, keyframes, _ := strings.Cut(animated, "@keyframes "+name+" {")
		keyframes, _, _ = strings.Cut(keyframes, "\n      }")
		last, place := -1.0, ""
		for _, match := range regexp.MustCompile(`([\d.]+)% \{ transform: (translate\([^)]*\))`).FindAllStringSubmatch(keyframes, -1) {
			at, err := strconv.ParseFloat(match[1], 64)
			if err != nil || at <= last || at >= 100 || last < 0 && at != 0 {
				t.Errorf("%s: keyframe at %s %% after %v %%", name, match[1], last)
			}
			last, place = at, match[2]
		}
		if static := d.places[name]; strings.NewReplacer("px", "", ",", "").Replace(place) != static {
			t.Errorf("%s: the last keyframe is %s, the static position %s", name, place, static)
		}
	}
}

// TestFramesShowEachRow: each row is on the screen in a frame, before the cursor, and in the last frame the cursor is
// on the screen.
func TestFramesShowEachRow(t *testing.T) {
	t.Parallel()
	f := example()
	for i, row := range f.rows {
		shown := slices.ContainsFunc(f.frames, func(at frame) bool {
			_, y := strip.place(at)
			y += float64(i * cellHeight)
			return y >= 0 && y+cellHeight <= screenHeight && (at.row > i || at.row == i && at.column >= len(row.text))
		})
		if !shown {
			t.Errorf("no frame shows row %d, %q", i, row.text)
		}
	}
	last := f.frames[len(f.frames)-1]
	if _, y := strip.place(last); last.row != len(f.rows)-1 || y+float64(last.row*cellHeight) != screenHeight-cellHeight {
		t.Errorf("the last frame is %+v, at %v", last, y)
	}
}

// TestTimes: rows appear one by one, long waits are short, and a long film plays faster.
func TestTimes(t *testing.T) {
	t.Parallel()
	f := example()
	if f.now > longestPlay {
		t.Errorf("the film is %v long", f.now)
	}
	for i := 1; i < len(f.frames); i++ {
		if wait := f.frames[i].at - f.frames[i-1].at; wait <= 0 || wait > longestWait {
			t.Errorf("frame %d, %+v, is %v after the one before", i, f.frames[i], wait)
		}
	}
	var long film
	long.add("$ ", "long", make([]line, 1000))
	long.end("$ ")
	if last := long.frames[len(long.frames)-1].at; long.now != longestPlay || last != longestPlay {
		t.Errorf("a long film is %v long, its last frame at %v", long.now, last)
	}
}

func TestSizeIsLimited(t *testing.T) {
	t.Parallel()
	var f film
	f.add("$ ", "large", slices.Repeat([]line{{0, strings.Repeat("x", screenColumns)}}, 1000))
	f.end("$ ")
	if _, err := f.svg(); err == nil || !strings.Contains(err.Error(), "the limit is 61440") {
		t.Error(err)
	}
}

func TestRowsOf(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("é", screenColumns)
	for text, want := range map[string][]string{
		"":                           {""},
		"a \r\n":                     {"a"},
		"a\tb\x00\x08c":              {"a       bc"},
		wide + "\n":                  {wide},
		wide + "x\ty":                {wide, "x       y"},
		"\x1b[?25l\x1b(Ba\x1b[0;1mb": {"ab"},
		"1 %\r2 %\r\n":               {"2 %"},
	} {
		if got := rowsOf(text); !slices.Equal(got, want) {
			t.Errorf("rows of %q: %q, want %q", text, got, want)
		}
	}
}

func TestReadLines(t *testing.T) {
	t.Parallel()
	lines, err := readLines(strings.NewReader("a\r\nb"), time.Now())
	if err != nil || len(lines) != 2 || lines[0].text != "a\r\n" || lines[1].text != "b" || lines[1].at < lines[0].at {
		t.Errorf("%+v, %v", lines, err)
	}
}

// TestCommittedDrawing: docs/terminal.svg shows the commands of README.md, which shows it.
func TestCommittedDrawing(t *testing.T) {
	t.Parallel()
	svg, err := os.ReadFile("../../docs/terminal.svg")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, svg)
	for _, command := range commands {
		if !slices.Contains(d.texts, "$ "+command) {
			t.Errorf("the drawing does not have %q: make recording", command)
		}
		if !strings.Contains(string(readme), "\n    "+command) {
			t.Errorf("README.md does not have %q", command)
		}
	}
	if len(svg) > mostBytes || !strings.Contains(string(readme), "](docs/terminal.svg)") {
		t.Errorf("the drawing has %d bytes; README.md must show it", len(svg))
	}
}
