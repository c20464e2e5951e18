// Command plot draws docs/bench.json, which hack/bench wrote, into SVG files beside it. "make bench"
// runs it after the bench, and so does
//
//	go -C hack/plot run .
//
//	records.go  what it reads: parts and their records
//	rates.go, receive.go, fanout.go, latency.go, requests.go    a figure each
//	figure.go   panels side by side, one legend, where the figures are from
//	panel.go    one pair of axes; ticks.go: round numbers on them
//	style.go    what a contender looks like, the same in all figures
//
// It is a module of its own, so that the library that draws is no dependency of who uses roced:
// what go.mod at the top lists, every user of package verbs has in their go.sum. The library is
// gonum.org/v1/plot: it is kept, plain Go, and writes text as text and the same bytes each time.
// A test holds the committed drawings to the committed figures.
//
// Left out: judging. A point that bench.json lacks is an error, a bad one is drawn.
package main
