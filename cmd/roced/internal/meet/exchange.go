package meet

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// DoneMessage is the client's last word, with its NUL.
const DoneMessage = "done\x00"

// Introduce is the client's half of the exchange: it speaks first.
func Introduce(conn io.ReadWriter, own Destination) (peer Destination, err error) {
	if _, err := conn.Write(own.Message()); err != nil {
		return peer, fmt.Errorf("send own address: %w", err)
	}
	if peer, err = readDestination(conn); err != nil {
		return peer, err
	}
	if _, err := io.WriteString(conn, DoneMessage); err != nil {
		return peer, fmt.Errorf("confirm the peer's address: %w", err)
	}
	return peer, nil
}

// Answer is the server's half. It calls prepare with the client's address; prepare returns this
// side's when the queue pair is ready.
func Answer(conn io.ReadWriter, prepare func(peer Destination) (own Destination, err error)) error {
	peer, err := readDestination(conn)
	if err != nil {
		return err
	}
	own, err := prepare(peer)
	if err != nil {
		return err
	}
	if _, err := conn.Write(own.Message()); err != nil {
		return fmt.Errorf("send own address: %w", err)
	}
	var done [len(DoneMessage)]byte
	if _, err := io.ReadFull(conn, done[:]); err != nil {
		return fmt.Errorf("wait for the client's confirmation: %w", err)
	}
	if string(done[:]) != DoneMessage {
		return fmt.Errorf("the client confirmed with %q, not with %q: %w", done, DoneMessage, unix.EBADMSG)
	}
	return nil
}

func readDestination(conn io.Reader) (Destination, error) {
	var message [destinationLen]byte
	if _, err := io.ReadFull(conn, message[:]); err != nil {
		return Destination{}, fmt.Errorf("read the peer's address: %w", err)
	}
	d, err := parseDestination(message[:])
	if err == nil {
		err = d.Check()
	}
	return d, err
}
