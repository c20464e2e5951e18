// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/peer"
)

// writer sends packets to the client, one at a time.
type writer struct {
	socket   *net.UnixConn
	conn     *proto.Conn
	inFlight *peer.InFlight

	mu      sync.Mutex
	renewed time.Time // when the deadline was last set
	err     error     // of the first packet that could not be sent
}

// writeTimeout is how long a client may leave a reply unread when the socket is full.
const writeTimeout = 30 * time.Second

// send sends a packet. It blocks while the client does not read and the socket is full, for at most writeTimeout.
func (w *writer) send(packet []byte, descriptors ...int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); now.Sub(w.renewed) > writeTimeout/8 { // not for each packet
		_ = w.socket.SetWriteDeadline(now.Add(writeTimeout))
		w.renewed = now
	}
	err := w.inFlight.Charge(len(descriptors))
	if err == nil {
		err = w.conn.Send(packet, descriptors...)
	}
	if w.err == nil {
		w.err = err
	}
	return err
}

// failure returns why a packet could not be sent, also by goroutines that discard the error; nil if all were sent.
func (w *writer) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("answer it: %w", w.err)
}
