// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

const docs = "../../docs"

// TestDrawingsAreOfTheFigures: the committed drawings are those of the committed figures.
func TestDrawingsAreOfTheFigures(t *testing.T) {
	drawings, err := drawAll(docs)
	if err != nil {
		t.Fatal(err)
	}
	for name, svg := range drawings {
		committed, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(committed, svg) {
			t.Errorf("%s is not what bench.json draws: go -C hack/plot run .", name)
		}
	}
	there, err := filepath.Glob(filepath.Join(docs, "*.svg"))
	if err != nil || len(there) != len(drawings)+2 { // and roced.svg and terminal.svg, which have no figures
		t.Errorf("%d drawings of figures; in %s are %q, %v", len(drawings), docs, there, err)
	}
}

func TestDrawingIsTheSameEachTime(t *testing.T) {
	first, err := drawAll(docs)
	if err != nil {
		t.Fatal(err)
	}
	again, err := drawAll(docs)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, again) {
		t.Error("two drawings differ")
	}
}

// TestDrawingsSayWhatTheyShow: titles, axes with units, contenders and the machine are text, in a
// file that is XML to its end.
func TestDrawingsSayWhatTheyShow(t *testing.T) {
	drawings, err := drawAll(docs)
	if err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string][]string{
		"rates.svg":       {udp.label, "payload, bytes", "million messages a second", "1024", udpTrains.label, udpCut.label, raw.label, rocedSpin.label, rocedSleep.label},
		"fanout.svg":      {udp.label, "receivers on one host", "million deliveries a second", "64 bytes", "1024 bytes", rocedSpin.label},
		"latency.svg":     {udp.label, "per cent of the round trips", "µs", "99.9", rocedSpin.label, rocedSleep.label},
		"receive.svg":     {"million steps a second", "there and back, ns", "million messages a second", raw.label, rocedSpin.label},
		"requests.svg":    {udp.label, "clients", "thousand requests a second", "processor time, µs", rocedSleep.label + ", whole machine"},
		"waiting.svg":     {udp.label, "20000 requests a second", "per cent of the requests", "µs (logarithmic)", "99", rocedSleep.label},
		"connections.svg": {tcp.label, tcpPlain.label, reads.label, "Gbit/s of payload", "4096"},
		"service.svg":     {tcp.label, udp.label, served.label, "million a second (logarithmic)", "99.9"},
	} {
		text := textOf(t, name, drawings[name])
		for _, label := range append(labels, "processors, Linux", "Commit ", "rounds of") {
			if !strings.Contains(text, label) {
				t.Errorf("%s does not say %q", name, label)
			}
		}
	}
}

// TestGapIsAnError: a drawing lacks nothing in silence.
func TestGapIsAnError(t *testing.T) {
	for _, figureOf := range []func(*records) (*figure, error){rates, receive, fanOut, latency, requests, waiting, connections, service} {
		f, err := readRecords(filepath.Join(docs, "bench.json"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := figureOf(f); err != nil {
			t.Fatal(err)
		}
		for i := range f.Parts {
			f.Parts[i].Records = slices.DeleteFunc(f.Parts[i].Records, func(r record) bool { return r.Variant == "udp" || r.Variant == "tcp" || r.Name == "receive alone" })
		}
		if _, err := figureOf(f); err == nil {
			t.Error("no error with records that lack")
		}
		if _, err := figureOf(&records{}); err == nil {
			t.Error("no error without any records")
		}
	}
}

func TestRoundNumbers(t *testing.T) {
	for _, c := range []struct{ y, down, up float64 }{
		{0.26, 0.2, 0.5}, {1, 1, 1}, {0.5, 0.5, 0.5}, {0.001, 0.001, 0.001}, {7.4, 5, 10}, {13.2, 10, 20}, {20, 20, 20}, {999, 500, 1000},
	} {
		if down, up := roundDown(c.y), roundUp(c.y); down != c.down || up != c.up {
			t.Errorf("%v is between %v and %v, want %v and %v", c.y, down, up, c.down, c.up)
		}
	}
	for _, c := range []struct {
		ticks plot.ConstantTicks
		want  string
	}{
		{roundTicks(0.26, 13.7), "0.2 0.5 1 2 5 10 20"}, {roundTicks(5, 10), "5 10"},
		{evenTicks(0.69), "0 0.2 0.4 0.6 0.8"}, {evenTicks(202), "0 50 100 150 200 250"}, {evenTicks(48.3), "0 10 20 30 40 50"},
	} {
		var labels []string
		for _, tick := range c.ticks {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("ticks %s, want %s", got, c.want)
		}
	}
}

func textOf(t *testing.T, name string, svg []byte) string {
	t.Helper()
	var text strings.Builder
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if data, is := token.(xml.CharData); is {
			text.Write(data)
		}
	}
}
