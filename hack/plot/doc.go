// SPDX-License-Identifier: Apache-2.0

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
// It is a module of its own, so that programs that use roced do not depend on the library that draws: every user of
// package verbs has in go.sum what go.mod at the top lists. The library is gonum.org/v1/plot: it is maintained,
// plain Go, and writes text as text and the same bytes each time. A test compares the committed drawings with the
// committed figures.
//
// Left out: judging. A point that bench.json lacks is an error, a bad one is drawn.
package main
