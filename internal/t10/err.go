package t10

import "fmt"

// ErrType is which part of a field was wrong (enum ib_sig_err_type).
type ErrType uint8

// The parts of a field.
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

// Err is the first block that failed its check (struct ib_sig_err).
type Err struct {
	Type             ErrType
	Expected, Actual uint32
	// Offset is where the wrong part of the field begins, in bytes of the message as it came, fields included. So
	// a division by the length of a block and its field gives the block.
	Offset uint64
	Key    uint32 // of the memory region: the caller's to fill in
}

func (e *Err) Error() string {
	return fmt.Sprintf("%v at byte %d is 0x%x, not 0x%x", e.Type, e.Offset, e.Actual, e.Expected)
}
