package connection

import (
	"fmt"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Operation is what a measurement does.
type Operation string

// The operations, by the names of the command line.
const (
	Send   Operation = "send"
	Write  Operation = "write"
	Read   Operation = "read"
	Atomic Operation = "atomic" // fetch-and-add
)

// AtomicSize is how many bytes an atomic is of.
const AtomicSize = 8

// ParseOperation is the operation of a name.
func ParseOperation(name string) (Operation, error) {
	switch o := Operation(name); o {
	case Send, Write, Read, Atomic:
		return o, nil
	}
	return "", fmt.Errorf("--op %s: send, write, read or atomic: %w", name, unix.EINVAL)
}

// HasAnswer says whether the peer's card answers with data, as only that of a reliable connection does.
func (o Operation) HasAnswer() bool { return o == Read || o == Atomic }

func (o Operation) opcode() verbs.Opcode {
	switch o {
	case Write:
		return verbs.WRRDMAWrite
	case Read:
		return verbs.WRRDMARead
	case Atomic:
		return verbs.WRAtomicFetchAndAdd
	}
	return verbs.WRSend
}
