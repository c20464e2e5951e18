// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"fmt"
	"slices"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Operation is the RDMA operation of a measurement.
type Operation string

// The operations, by their names on the command line.
const (
	Send   Operation = "send"
	Write  Operation = "write"
	Read   Operation = "read"
	Atomic Operation = "atomic" // fetch-and-add
	Swap   Operation = "swap"   // compare-and-swap, the other atomic
)

// AtomicSize is the size of an atomic's operand in bytes.
const AtomicSize = 8

// Operations returns the names of all operations.
func Operations() []string {
	return []string{string(Send), string(Write), string(Read), string(Atomic), string(Swap)}
}

// ParseOperation returns the operation with a name, or EINVAL.
func ParseOperation(name string) (Operation, error) {
	if slices.Contains(Operations(), name) {
		return Operation(name), nil
	}
	return "", errno.New(fmt.Sprintf("--op must be send, write, read, atomic or swap: %s", name), unix.EINVAL)
}

// HasAnswer reports whether the peer's card responds with data. Only reliable connections have such
// operations.
func (o Operation) HasAnswer() bool { return o == Read || o.IsAtomic() }

// IsAtomic reports whether the operation is an atomic, on AtomicSize bytes.
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
