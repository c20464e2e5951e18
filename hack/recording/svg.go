// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Lengths in the drawing. A character is as wide as in most monospace fonts. Where a font differs, the attribute
// textLength makes it fit.
const (
	drawingWidth = 860
	cellWidth    = 7.2
	cellHeight   = 16
	baseline     = 12 // within a row
	titleHeight  = 28
	margin       = 16
	screenWidth  = screenColumns * cellWidth
	screenHeight = screenRows * cellHeight
	mostBytes    = 60 << 10
)

// style has the colours of docs/roced.svg.
const style = `
    text { font: 12px Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; white-space: pre; fill: #1f2328 }
    .window { fill: #f4f6f8; stroke: #57606a }
    .cover { fill: #f4f6f8 }
    .title { text-anchor: middle; fill: #57606a }
    .typed { fill: #0969da }
    .block { fill: #57606a }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .window { fill: #21262d; stroke: #8b949e }
      .cover { fill: #21262d }
      .title { fill: #9da7b3 }
      .typed { fill: #58a6ff }
      .block { fill: #9da7b3 }
    }`

// track is a group of the drawing that moves. It has the name of its class and of its keyframes.
type track struct {
	name  string
	place func(frame) (x, y float64)
}

var (
	strip  = track{"strip", func(f frame) (x, y float64) { return 0, float64(min(0, screenRows-1-f.row) * cellHeight) }}
	cursor = track{"cursor", func(f frame) (x, y float64) { return float64(f.column) * cellWidth, float64(f.row * cellHeight) }}
	title  = track{"titles", func(f frame) (x, y float64) { return 0, float64(-f.title * titleHeight) }}
)

// svg returns the drawing of a film that has ended. Its static state is the last frame.
func (f *film) svg() ([]byte, error) {
	var b strings.Builder
	height := titleHeight + screenHeight + margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" xml:space="preserve">`+"\n", drawingWidth, height)
	fmt.Fprintf(&b, "  <title>A terminal: %s</title>\n", escaped(strings.Join(f.titles, "; ")))
	fmt.Fprintf(&b, "  <style>%s\n    @media (prefers-reduced-motion: no-preference) {\n", style)
	for _, t := range []track{strip, cursor, title} {
		f.animate(&b, t)
	}
	b.WriteString("    }\n  </style>\n")
	fmt.Fprintf(&b, `  <rect class="window" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>`+"\n", drawingWidth-1, height-1)
	f.drawTitles(&b)
	f.drawScreen(&b)
	b.WriteString("</svg>\n")
	if b.Len() > mostBytes {
		return nil, fmt.Errorf("the drawing has %d bytes, the limit is %d; record less output", b.Len(), mostBytes)
	}
	return []byte(b.String()), nil
}

// animate writes the keyframes of a track: one whenever its place changes.
func (f *film) animate(b *strings.Builder, t track) {
	total := f.now + holdTime
	fmt.Fprintf(b, "      .%s { animation: %s %.2fs step-end infinite }\n      @keyframes %[2]s {\n", t.name, t.name, total.Seconds())
	last := ""
	for i, frame := range f.frames {
		x, y := t.place(frame)
		place := fmt.Sprintf("transform: translate(%.5gpx, %.5gpx)", x, y)
		if frame.keys > 0 {
			place += fmt.Sprintf("; animation-timing-function: steps(%d)", frame.keys)
		}
		if i == 0 || place != last {
			fmt.Fprintf(b, "        %.2f%% { %s }\n", 100*frame.at.Seconds()/total.Seconds(), place)
		}
		last = place
	}
	b.WriteString("      }\n")
}

// begin opens the group of a track at its place in the last frame.
func (f *film) begin(b *strings.Builder, t track) {
	x, y := t.place(f.frames[len(f.frames)-1])
	fmt.Fprintf(b, `    <g class="%s" transform="translate(%.5g %.5g)">`+"\n", t.name, x, y)
}

func (f *film) drawTitles(b *strings.Builder) {
	fmt.Fprintf(b, `  <svg width="%d" height="%d">`+"\n", drawingWidth, titleHeight)
	f.begin(b, title)
	for i, text := range f.titles {
		fmt.Fprintf(b, `      <text class="title" x="%d" y="%d">%s</text>`+"\n", drawingWidth/2, i*titleHeight+18, escaped(text))
	}
	b.WriteString("    </g>\n  </svg>\n")
}

func (f *film) drawScreen(b *strings.Builder) {
	fmt.Fprintf(b, `  <svg x="%d" y="%d" width="%g" height="%d">`+"\n", margin, titleHeight, screenWidth, screenHeight)
	f.begin(b, strip)
	for i, row := range f.rows {
		text := strings.TrimSpace(row.text)
		if text == "" {
			continue
		}
		class := ""
		if row.typed {
			class = ` class="typed"`
		}
		indent := float64(strings.Index(row.text, text)) * cellWidth // spaces only
		length := float64(utf8.RuneCountInString(text)) * cellWidth
		fmt.Fprintf(b, `<text%s x="%.5g" y="%d" textLength="%.5g">%s</text>`+"\n", class, indent, i*cellHeight+baseline, length, escaped(text))
	}
	f.begin(b, cursor)
	fmt.Fprintf(b, `      <path class="cover" d="M0 0H%g V%d H-%[1]g V%[3]d H0z"/>`+"\n", screenWidth, screenHeight, cellHeight)
	fmt.Fprintf(b, `      <rect class="block" width="%g" height="%d"/>`+"\n", cellWidth, cellHeight)
	b.WriteString("    </g>\n    </g>\n  </svg>\n")
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder returns no errors
	return b.String()
}
