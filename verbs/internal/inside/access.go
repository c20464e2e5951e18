// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"context"
	"sync"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// Access contains the functions that verbs provides. No argument may be nil.
type Access[Context, PD, MR, QP, CQ any] struct {
	// Provider returns the session of a context.
	Provider func(Context) provider.Provider
	// PD returns the handle of a protection domain.
	PD func(PD) provider.Handle
	// MR returns the session of a region, and its handle.
	MR func(MR) (provider.Provider, provider.Handle)
	// Bytes returns the memory of an SGE. It returns an error if the SGE is not in a region of the context, or is in a
	// fast region.
	Bytes func(Context, ib.SGE) ([]byte, error)

	// FindMemory returns the key of the region of the session's own memory that contains the given bytes, and their
	// offset in it; ok is false if there is none.
	FindMemory func(Context, []byte) (key ib.LKey, offset uint64, ok bool)
	// AddCoherent adds the region of coherent memory to a context.
	AddCoherent func(Context, provider.MRGrant)
	// Coherent returns the region with a key that AddCoherent has added, or nil.
	Coherent func(Context, ib.LKey) MR

	// AddFast creates a fast region of a protection domain. Its memory is that of the grant; the list is in FastMR.
	AddFast func(PD, provider.MRGrant, *FastMR) MR
	// Fast returns the state of a fast region; nil for other regions.
	Fast func(MR) *FastMR
	// SetIOVA sets the address at which a fast region begins.
	SetIOVA func(MR, uint64)
	// SetKey replaces the low 8 bits of the keys that LKey and RKey return.
	SetKey func(MR, uint8)

	// Queued returns the number of unpolled completions in a CQ. If the CQ is empty, it first runs a round of the card.
	Queued func(CQ) (int, error)
	// ArmCount requests an event of a CQ when it contains n completions.
	ArmCount func(CQ, int) error

	// CheckModifyQP returns an error if a queue pair cannot change its state with these attributes.
	CheckModifyQP func(current, next ib.QPState, kind ib.QPType, mask ib.QPAttrMask) error
	// HasReceives reports whether a queue pair has its own receive queue.
	HasReceives func(QP) bool
	// AwaitPolled waits until the completions of all send requests, or of all receives, of a queue pair have been
	// polled.
	AwaitPolled func(ctx context.Context, qp QP, receives bool) error
}

// FastMR holds the contents of a region's next fast registration. MapSG of package kernel writes it, and posting the
// registration request reads it.
type FastMR struct {
	Kind ib.MRType
	Most int // maximum number of entries

	sync.Mutex        // guards the fields below
	List       []byte // entries (ring.RegEntry), in memory shared with the card
	Count      int    // number of entries
	Length     uint64 // total length of their memory, in bytes
	Meta       int    // number of entries of the list of fields, which follows the list of data
}

var access any

// Set sets the Access that Get returns. Package verbs calls it when it is initialized.
func Set(a any) { access = a }

// Get returns the Access that verbs has set.
func Get[A any]() A { return access.(A) }
