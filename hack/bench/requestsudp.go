// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"net/netip"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs/hca"
)

// listenUDP opens a socket in the job's namespace.
func listenUDP(j harness.Job, port int) (conn *net.UDPConn, err error) {
	err = hca.RunIn(j.Namespace, func() error {
		conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(j.Own.Address), Port: port})
		return err
	})
	return conn, err
}

func udpServe(j harness.Job) (harness.Result, error) {
	conn, err := listenUDP(j, udpPort)
	if err != nil {
		return harness.Result{}, err
	}
	go func() {
		<-harness.UntilStopped.Done()
		_ = conn.Close()
	}()
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	values, buffer, meter := newStore(j.Size), make([]byte, 2048), meterProcessor()
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			break
		}
		if _, err := conn.WriteToUDPAddrPort(values.answer(buffer[:n]), from); err != nil {
			return harness.Result{}, err
		}
	}
	var r harness.Result
	meter(&r)
	return r, nil
}

// udpClient is a requester with a UDP socket.
type udpClient struct {
	conn   *net.UDPConn
	server netip.AddrPort
	buffer [2048]byte
}

func (c *udpClient) roundTrip(request []byte) ([]byte, error) {
	if _, err := c.conn.WriteToUDPAddrPort(request, c.server); err != nil {
		return nil, err
	}
	n, _, err := c.conn.ReadFromUDPAddrPort(c.buffer[:])
	return c.buffer[:n], err
}

func (c *udpClient) close() error { return c.conn.Close() }

func udpRequest(j harness.Job) (harness.Result, error) {
	clients := make([]requester, j.Clients)
	for i := range clients {
		conn, err := listenUDP(j, 0)
		if err != nil {
			return harness.Result{}, err
		}
		if err := conn.SetReadDeadline(time.Now().Add(j.Duration + requestTimeout)); err != nil {
			return harness.Result{}, err
		}
		clients[i] = &udpClient{conn: conn, server: netip.AddrPortFrom(netip.MustParseAddr(j.Peer.Address), udpPort)}
	}
	return runClients(j, clients)
}
