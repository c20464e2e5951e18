// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/internal/waittest"
)

// socket opens another socket on the queue of the link. It waits until the queue is free.
func (l *wireLab) socket(config xsk.Config) *xsk.Socket {
	l.Helper()
	index, err := l.A.Index("eth0")
	check(l, err)
	config.Interface = index
	var s *xsk.Socket
	check(l, l.A.Do(func() (err error) {
		s, err = xsk.Prepare(config)
		return err
	}))
	return s
}

// drained waits until the socket is empty.
func (l *wireLab) drained(s *xsk.Socket) {
	l.Helper()
	for deadline := time.Now().Add(waittest.Limit); !l.link.Drain(s); {
		if time.Now().After(deadline) {
			l.Fatal("the socket does not become empty")
		}
	}
}

// replace replaces the socket of the link's queue.
func (l *wireLab) replace(config xsk.Config) {
	l.Helper()
	was, next := l.link.sockets[0], l.socket(config)
	l.drained(was)
	if l.link.Reserve() != nil {
		l.Error("a frame was reserved in a socket that is being removed")
	}
	l.link.Remove(was)
	check(l, was.Close())
	if l.link.Reserve() != nil || !l.link.Flush() || l.link.Receive() != 0 || len(l.link.Descriptors()) != 0 {
		l.Error("a link without sockets reserved or received a frame")
	}
	l.link.TakeBack()
	check(l, next.Bind())
	l.link.Add(next)
}

// Frames that were committed before a socket is replaced are sent through it, and later ones through the new socket, in
// order. A frame that was only reserved is dropped. The counters continue.
func TestReplaceSocket(t *testing.T) {
	l := newWireLab(t)
	f := newFlow(0, "10.77.0.1", "10.77.0.2")
	for range 5 {
		before := f.packets(slices.Repeat([]int{64}, 10)...)
		for _, frame := range before {
			l.link.Commit(copy(l.link.Reserve(), frame))
		}
		l.link.Reserve() // never committed
		l.replace(xsk.Config{ChunkSize: 4096})
		after := f.packets(64, 200, 64)
		l.send(after...)
		l.expect(append(before, after...)...)
	}
	if sent := l.link.Sent(); sent.Frames+sent.InTrains != 65 || l.link.Refused() != 0 || l.link.TakenBack() != 0 {
		t.Errorf("%+v", sent)
	}
	statistics, err := l.link.Statistics()
	check(t, err)
	if statistics.TxRingEmpty < 5 {
		t.Errorf("the counters of removed sockets are lost: %+v", statistics)
	}
}

// Frames that cannot be sent because the interface is down are counted as taken back when the socket is removed.
func TestReplaceSocketWhileDown(t *testing.T) {
	for _, trains := range []bool{false, true} {
		l := newWireLab(t)
		l.link.SetTrains(Trains{Use: trains, Name: "eth0"})
		eth0, err := l.A.Netlink().LinkByName("eth0")
		check(t, err)
		check(t, l.A.Netlink().LinkSetDown(eth0))
		f := newFlow(0, "10.77.0.1", "10.77.0.2")
		for _, frame := range f.packets(slices.Repeat([]int{64}, 20)...) {
			l.link.Commit(copy(l.link.Reserve(), frame))
		}
		l.link.Flush()
		was := l.link.sockets[0]
		l.drained(was)
		l.link.Remove(was)
		check(t, was.Close())
		if back, refused := l.link.TakenBack(), l.link.Refused(); back != 20 || refused != 0 {
			t.Errorf("trains %v: %d of 20 taken back, %d refused", trains, back, refused)
		}
		check(t, l.A.Netlink().LinkSetUp(eth0))
		next := l.socket(xsk.Config{})
		check(t, next.Bind())
		l.link.Add(next)
		frames := f.packets(64, 64)
		l.send(frames...)
		l.expect(frames...)
	}
}
