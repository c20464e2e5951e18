// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// DoneMessage is the last message of the client, with its NUL.
const DoneMessage = "done\x00"

// SRQAddresses is the number of addresses that ibv_srq_pingpong sends and expects, independent of the number
// of its queue pairs (-q). Other programs send one.
const SRQAddresses = 256

// Introduce runs the client's half of the exchange: it sends first, and exchanges terms with another roced.
// Each side sends the given number of addresses, of which only the first is used.
func Introduce(conn io.ReadWriter, terms *Terms, own Destination, addresses int) (peer Destination, err error) {
	message := own.Message()
	terms.markAddresses(message, addresses)
	if err := sendDestinations(conn, message, addresses); err != nil {
		return peer, err
	}
	if conn, err = terms.Offer(conn); err != nil {
		return peer, err
	}
	if peer, err = readDestinations(conn, addresses); err != nil {
		return peer, err
	}
	if _, err := io.WriteString(conn, DoneMessage); err != nil {
		return peer, fmt.Errorf("confirm the peer's address: %w", err)
	}
	return peer, nil
}

// Answer runs the server's half of the exchange. It calls prepare with the client's address; prepare returns
// the address of this side when the queue pair is ready.
func Answer(conn io.ReadWriter, terms *Terms, addresses int, prepare func(peer Destination) (own Destination, err error)) error {
	begin, kind, err := terms.ReadFirst(conn)
	if err != nil {
		return err
	}
	if kind == Perftest {
		version, _, _ := strings.Cut(string(begin), "\x00")
		return fmt.Errorf("the client is a perftest program (%s); start roced perf with --perftest, --rc or --uc: %w", version, unix.EPROTONOSUPPORT)
	}
	peer, err := readDestinations(&continued{conn, begin}, addresses)
	if err != nil {
		return err
	}
	own, err := prepare(peer)
	if err != nil {
		return err
	}
	if err := sendDestinations(conn, own.Message(), addresses); err != nil {
		return err
	}
	var done [len(DoneMessage)]byte
	if _, err := io.ReadFull(conn, done[:]); err != nil {
		return fmt.Errorf("wait for the client's confirmation: %w", err)
	}
	if string(done[:]) != DoneMessage {
		return fmt.Errorf("the client confirmed with %q, want %q: %w", done, DoneMessage, unix.EBADMSG)
	}
	return nil
}

// sendDestinations sends the address of this side, followed by empty ones.
func sendDestinations(conn io.Writer, message []byte, addresses int) error {
	for range addresses - 1 {
		message = append(message, Destination{}.Message()...)
	}
	if _, err := conn.Write(message); err != nil {
		return fmt.Errorf("send own address: %w", err)
	}
	return nil
}

// readDestinations reads the same number of addresses and returns the first, that of the peer.
func readDestinations(conn io.Reader, addresses int) (Destination, error) {
	messages := make([]byte, addresses*destinationLen)
	if _, err := io.ReadFull(conn, messages); err != nil {
		return Destination{}, fmt.Errorf("read the peer's address: %w", err)
	}
	d, err := parseDestination(messages[:destinationLen])
	if err == nil {
		err = d.Check()
	}
	return d, err
}
