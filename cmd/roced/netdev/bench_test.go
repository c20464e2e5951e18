// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cmdtest"
	"github.com/roced/roced/internal/lab"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
)

// BenchmarkBesidePlain measures plain IP and netdev between two hosts in one run: one UDP datagram, or 64 KiB of
// TCP, per operation.
func BenchmarkBesidePlain(b *testing.B) {
	for _, way := range []string{"plain", "--network xdp", "--network udp", "--network udp --mtu 9000"} {
		b.Run(strings.ReplaceAll(way, " ", "_"), func(b *testing.B) {
			hosts, to := labtest.Pair(b), "10.77.0.2"
			if way != "plain" {
				to = "192.168.7.2"
				cmdtest.Start(b, args(hosts.A, addressA+way)...).Await(b, says)
				cmdtest.Start(b, args(hosts.B, addressB+way)...).Await(b, says)
			}
			ping(b, hosts.A, to, 56)
			b.Run("UDP_64", func(b *testing.B) { datagrams(b, hosts.A, hosts.B, to, 64) })
			b.Run("UDP_1000", func(b *testing.B) { datagrams(b, hosts.A, hosts.B, to, 1000) })
			b.Run("TCP", func(b *testing.B) {
				rate := bulk(b, hosts.A, hosts.B, to, int64(b.N)<<16)
				b.ReportMetric(rate/1e6, "MB/s")
			})
		})
	}
}

// datagrams sends b.N datagrams as fast as it can, and reports the number received per second.
func datagrams(b *testing.B, from, at *lab.Namespace, to string, size int) {
	receiver := in(b, at, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(to)}) })
	check(b, receiver.SetReadBuffer(8<<20))
	var came atomic.Uint64
	var last atomic.Int64
	ended := make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(ended)
		for p := make([]byte, 2048); ; came.Add(1) {
			if _, err := receiver.Read(p); err != nil {
				return
			}
			last.Store(int64(time.Since(begin)))
		}
	}()
	address := receiver.LocalAddr().(*net.UDPAddr)
	sender := in(b, from, func() (*net.UDPConn, error) { return net.DialUDP("udp4", nil, address) })
	for p := make([]byte, size); b.Loop(); {
		if _, err := sender.Write(p); err != nil {
			b.Log(err)
		}
	}
	awaitQuiet(&came)
	rate := float64(came.Load()) / time.Duration(last.Load()).Seconds()
	b.ReportMetric(rate, "came/s")
	b.ReportMetric(rate*float64(size)/1e6, "MB/s")
	check(b, sender.Close())
	check(b, receiver.Close())
	<-ended
}

// awaitQuiet waits until no more datagrams arrive.
func awaitQuiet(came *atomic.Uint64) {
	for deadline := time.Now().Add(waittest.Limit); time.Now().Before(deadline); {
		before := came.Load()
		if time.Sleep(50 * time.Millisecond); came.Load() == before {
			return
		}
	}
}
