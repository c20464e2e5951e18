// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// figure is panels side by side, under a title.
type figure struct {
	title     string
	panels    []panel
	sameScale bool   // of the y axes
	source    string // where the figures are from
}

// Lengths are in points.
const (
	width       = 660
	panelHeight = 250
	margin      = 12
	titleHeight = 26
	legendLine  = 16
	legendWidth = 215 // of an entry
	sourceSize  = 9
)

func (f *figure) svg() ([]byte, error) {
	legend := f.legend()
	columns := (width - 2*margin) / legendWidth
	rows := (len(legend) + columns - 1) / columns
	foot := vg.Length(rows*legendLine + sourceSize + 2*margin)
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, titleHeight+margin+panelHeight+foot))
	all := draw.New(canvas)
	all.SetColor(white)
	all.Fill(all.Rectangle.Path())
	f.drawTexts(all)
	if err := f.drawPanels(draw.Crop(all, margin, -margin, foot, -titleHeight-margin)); err != nil {
		return nil, err
	}
	if err := drawLegend(draw.Crop(all, margin, -margin, sourceSize+margin, 0), legend, rows); err != nil {
		return nil, err
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// A browser without this font takes one of the same widths, and no serifs.
	return bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

func (f *figure) drawTexts(all draw.Canvas) {
	plain := plot.New().Title.TextStyle // any style has what draws it
	plain.XAlign, plain.YAlign = text.XLeft, text.YTop
	title := sans(14, plain)
	all.FillText(title, vg.Point{X: margin, Y: all.Max.Y - margin}, f.title)
	source := sans(sourceSize, plain)
	source.Color, source.YAlign = faint, text.YBottom
	all.FillText(source, vg.Point{X: margin, Y: margin / 2}, f.source)
}

func (f *figure) drawPanels(space draw.Canvas) error {
	each := space.Size().X / vg.Length(len(f.panels))
	for i := range f.panels {
		axes, err := f.panels[i].plot(f.extentOf(i))
		if err != nil {
			return err
		}
		left := vg.Length(i) * each
		axes.Draw(draw.Crop(space, left, left+each-space.Size().X-margin, 0, 0))
	}
	return nil
}

// extentOf returns the range of a panel's y axis.
func (f *figure) extentOf(i int) (least, most float64) {
	if f.sameScale {
		return extent(f.panels...)
	}
	return extent(f.panels[i])
}

// legend has each name once.
func (f *figure) legend() (entries []line) {
	seen := map[string]bool{}
	for _, p := range f.panels {
		for _, l := range p.lines {
			if !seen[l.name()] {
				entries = append(entries, l)
			}
			seen[l.name()] = true
		}
	}
	return entries
}

// drawLegend fills the foot of the space, column by column.
func drawLegend(space draw.Canvas, entries []line, rows int) (failed error) {
	for column := 0; column*rows < len(entries); column++ {
		legend := plot.NewLegend()
		legend.Top, legend.Left = true, true
		legend.TextStyle = sans(11, legend.TextStyle)
		legend.ThumbnailWidth = vg.Points(26)
		legend.Padding = legendLine - legend.TextStyle.Height("M")
		for _, l := range entries[column*rows : min((column+1)*rows, len(entries))] {
			d, err := l.drawn((&panel{fromZero: true}).place)
			failed = errors.Join(failed, err)
			legend.Add(l.name(), d.line, d.points)
		}
		place := space
		place.Min.X += vg.Length(column * legendWidth)
		place.Max.Y = place.Min.Y + vg.Length(rows*legendLine)
		legend.Draw(place)
	}
	return failed
}
