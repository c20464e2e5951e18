package connection

import (
	"fmt"
	"slices"

	"github.com/roced/roced/internal/errno"
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
	Swap   Operation = "swap"   // compare-and-swap, the other atomic
)

// AtomicSize is how many bytes an atomic is of.
const AtomicSize = 8

// Operations are their names.
func Operations() []string {
	return []string{string(Send), string(Write), string(Read), string(Atomic), string(Swap)}
}

// ParseOperation is the operation of a name.
func ParseOperation(name string) (Operation, error) {
	if slices.Contains(Operations(), name) {
		return Operation(name), nil
	}
	return "", errno.New(fmt.Sprintf("--op %s: send, write, read, atomic or swap", name), unix.EINVAL)
}

// HasAnswer says whether the peer's card answers with data, as only that of a reliable connection does.
func (o Operation) HasAnswer() bool { return o == Read || o.IsAtomic() }

// IsAtomic says that it works on AtomicSize bytes.
func (o Operation) IsAtomic() bool { return o == Atomic || o == Swap }

func (o Operation) opcode() verbs.Opcode {
	switch o {
	case Write:
		return verbs.WRRDMAWrite
	case Read:
		return verbs.WRRDMARead
	case Atomic:
		return verbs.WRAtomicFetchAndAdd
	case Swap:
		return verbs.WRAtomicCmpAndSwp
	}
	return verbs.WRSend
}
