// SPDX-License-Identifier: Apache-2.0

package t10

import "fmt"

// ErrType is the part of a field that failed its check (enum ib_sig_err_type).
type ErrType uint8

// Parts of a field.
const (
	BadGuard ErrType = iota
	BadRefTag
	BadAppTag
)

func (t ErrType) String() string {
	switch t {
	case BadGuard:
		return "guard"
	case BadRefTag:
		return "reference tag"
	case BadAppTag:
		return "application tag"
	}
	return fmt.Sprintf("signature error %d", uint8(t))
}

// Err describes the first block that failed its check (struct ib_sig_err).
type Err struct {
	Type             ErrType
	Expected, Actual uint32
	// Offset is the position of the invalid part of the field in the received message, in bytes, including
	// fields. Divided by the length of a block and its field it gives the block.
	Offset uint64
	Key    uint32 // of the memory region; set by the caller
}

func (e *Err) Error() string {
	return fmt.Sprintf("%v at byte %d: got 0x%x, want 0x%x", e.Type, e.Offset, e.Actual, e.Expected)
}
