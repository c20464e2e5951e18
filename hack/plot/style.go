// SPDX-License-Identifier: Apache-2.0

package main

import (
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colours are Okabe's and Ito's, which colour-blind people can tell apart. The ground is white
// and not transparent: it reads the same on a light page and on a dark one.
var (
	white  = color.RGBA{255, 255, 255, 255}
	ink    = color.RGBA{32, 32, 32, 255}
	faint  = color.RGBA{110, 110, 110, 255}
	ruling = color.RGBA{225, 225, 225, 255}
)

// contender is one of the measured variants.
type contender struct {
	label  string
	colour color.RGBA
	shape  draw.GlyphDrawer
}

var (
	udp        = contender{"kernel UDP", color.RGBA{213, 94, 0, 255}, draw.BoxGlyph{}}
	udpTrains  = contender{"kernel UDP, trains", color.RGBA{204, 121, 167, 255}, draw.TriangleGlyph{}}
	udpCut     = contender{"kernel UDP, trains cut", color.RGBA{230, 159, 0, 255}, draw.PyramidGlyph{}}
	raw        = contender{"raw AF_XDP", color.RGBA{120, 120, 120, 255}, draw.CrossGlyph{}}
	rocedSpin  = contender{"roced, spinning", color.RGBA{0, 114, 178, 255}, draw.CircleGlyph{}}
	rocedSleep = contender{"roced, sleeping", color.RGBA{0, 158, 115, 255}, draw.RingGlyph{}}

	tcp         = contender{"TCP, one stream", color.RGBA{0, 0, 0, 255}, draw.PlusGlyph{}}
	tcpPlain    = contender{"TCP without offload", color.RGBA{120, 120, 120, 255}, draw.CrossGlyph{}}
	datagrams   = contender{"roced, datagrams", color.RGBA{0, 114, 178, 255}, draw.CircleGlyph{}}
	sends       = contender{"roced, SEND", color.RGBA{0, 158, 115, 255}, draw.RingGlyph{}}
	writes      = contender{"roced, RDMA WRITE", color.RGBA{204, 121, 167, 255}, draw.TriangleGlyph{}}
	reads       = contender{"roced, RDMA READ", color.RGBA{230, 159, 0, 255}, draw.PyramidGlyph{}}
	served      = contender{"through the service, sleeping", color.RGBA{204, 121, 167, 255}, draw.TriangleGlyph{}}
	servedSpins = contender{"through the service, spinning", color.RGBA{230, 159, 0, 255}, draw.PyramidGlyph{}}
)

// line is one contender's figures: one for each tick of the panel's x axis, joined; or points at places
// of their own.
type line struct {
	contender
	aspect string // which of the contender's lines this is, if it has several
	dashed bool
	places []float64
	values []float64
}

// name returns the legend's text.
func (l *line) name() string {
	if l.aspect == "" {
		return l.label
	}
	return l.label + ", " + l.aspect
}

// drawn is a line that gonum can draw, on axes and in a legend.
type drawn struct {
	line   *plotter.Line
	points *plotter.Scatter
}

// drawn has each value at its place on the y axis.
func (l *line) drawn(place func(float64) float64) (d drawn, err error) {
	xys := make(plotter.XYs, len(l.values))
	for i, y := range l.values {
		xys[i] = plotter.XY{X: float64(i), Y: place(y)}
		if l.places != nil {
			xys[i].X = l.places[i]
		}
	}
	if d.line, d.points, err = plotter.NewLinePoints(xys); err != nil {
		return d, err
	}
	d.line.Color, d.line.Width = l.colour, vg.Points(1.8)
	if l.places != nil {
		d.line.Width = 0 // none
	}
	if l.dashed {
		d.line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	d.points.GlyphStyle = draw.GlyphStyle{Color: l.colour, Radius: vg.Points(3.2), Shape: l.shape}
	return d, nil
}
