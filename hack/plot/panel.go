// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// panel is one pair of axes. The places on the x axis are names, at equal distances, or numbers if
// there are no names; the y axis has units.
type panel struct {
	title, x, y string
	ticks       []string
	fromZero    bool // the y axis is linear and begins at 0; otherwise it is logarithmic
	lines       []line
}

// sans is a style of text.
func sans(size vg.Length, style text.Style) text.Style {
	style.Font = font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
	style.Color = ink
	return style
}

// plot makes axes with the lines, whose values are from least to most.
func (p *panel) plot(least, most float64) (*plot.Plot, error) {
	axes := plot.New()
	axes.BackgroundColor = white
	axes.Title.Text, axes.X.Label.Text, axes.Y.Label.Text = p.title, p.x, p.y
	if !p.fromZero {
		axes.Y.Label.Text += " (logarithmic)"
	}
	axes.Title.TextStyle = sans(11, axes.Title.TextStyle)
	axes.Title.Padding = vg.Points(8)
	for _, axis := range []*plot.Axis{&axes.X, &axes.Y} {
		axis.Label.TextStyle = sans(11, axis.Label.TextStyle)
		axis.Tick.Label = sans(10, axis.Tick.Label)
		axis.Label.Padding = vg.Points(4)
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = faint, faint
	}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = ruling, ruling
	axes.Add(grid)
	for i := range p.lines {
		d, err := p.lines[i].drawn(p.place)
		if err != nil {
			return nil, err
		}
		axes.Add(d.line, d.points)
	}
	p.scale(axes, least, most)
	return axes, nil
}

// scale has the axes reach from a round number to a round number.
func (p *panel) scale(axes *plot.Plot, least, most float64) {
	places := p.places()
	axes.X.Tick.Marker = places
	axes.X.Min, axes.X.Max = -0.2, places[len(places)-1].Value+0.2
	heights := evenTicks(most)
	if !p.fromZero {
		heights = roundTicks(least, most)
	}
	for i := range heights {
		heights[i].Value = p.place(heights[i].Value)
	}
	axes.Y.Min, axes.Y.Max = heights[0].Value, heights[len(heights)-1].Value
	axes.Y.Tick.Marker = heights
}

// places are the ticks of the x axis: the names, or numbers from 0 on.
func (p *panel) places() (ticks plot.ConstantTicks) {
	for i, name := range p.ticks {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: name})
	}
	if ticks != nil {
		return ticks
	}
	most := 0.0
	for _, l := range p.lines {
		most = max(most, slices.Max(l.places))
	}
	return evenTicks(most)
}

// place is where on the y axis a value is. The library's own logarithmic scale leaves too much room
// for the axis' name.
func (p *panel) place(y float64) float64 {
	if p.fromZero {
		return y
	}
	return math.Log10(y)
}

// extent is from the least to the most of all values.
func extent(panels ...panel) (least, most float64) {
	least = math.Inf(1)
	for _, p := range panels {
		for _, l := range p.lines {
			for _, y := range l.values {
				least, most = min(least, y), max(most, y)
			}
		}
	}
	return least, most
}

func tickAt(y float64) plot.Tick {
	return plot.Tick{Value: y, Label: strconv.FormatFloat(y, 'g', 6, 64)}
}
