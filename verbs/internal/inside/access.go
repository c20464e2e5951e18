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
	// Provider returns the session that a context is on.
	Provider func(Context) provider.Provider
	// PD returns the handle of a protection domain.
	PD func(PD) provider.Handle
	// MR returns the session of a region, and its handle.
	MR func(MR) (provider.Provider, provider.Handle)
	// Bytes returns the memory of an SGE: an error unless it is in a region of the context that is not a fast one.
	Bytes func(Context, ib.SGE) ([]byte, error)

	// FindMemory returns the key of the region of the session's own memory that holds these bytes, and their offset in it.
	FindMemory func(Context, []byte) (key ib.LKey, offset uint64, ok bool)
	// AddCoherent adds the region of coherent memory to a context.
	AddCoherent func(Context, provider.MRGrant)
	// Coherent returns the region that AddCoherent has added, by its key, or nil.
	Coherent func(Context, ib.LKey) MR

	// AddFast creates a fast region of a domain. Its memory is the grant's; the list is in FastMR.
	AddFast func(PD, provider.MRGrant, *FastMR) MR
	// Fast returns the state of a fast region; nil of another.
	Fast func(MR) *FastMR
	// SetIOVA sets the address that a fast region begins at.
	SetIOVA func(MR, uint64)
	// SetKey replaces the low 8 bits of the keys that LKey and RKey return.
	SetKey func(MR, uint8)

	// Queued returns the number of unpolled completions in a queue, after running the card if the queue is empty.
	Queued func(CQ) (int, error)
	// ArmCount arms a queue for the moment when it holds n completions.
	ArmCount func(CQ, int) error

	// CheckModifyQP returns the reason why a queue pair cannot change its state with these attributes, or nil.
	CheckModifyQP func(current, next ib.QPState, kind ib.QPType, mask ib.QPAttrMask) error
	// HasReceives reports whether a queue pair has a receive queue of its own.
	HasReceives func(QP) bool
	// AwaitPolled waits until the completions of all send requests, or of all receives, of a queue pair have been
	// polled.
	AwaitPolled func(ctx context.Context, qp QP, receives bool) error
}

// FastMR is the content of a region's next fast registration. MapSG of package kernel writes it; posting the request
// reads it.
type FastMR struct {
	Kind ib.MRType
	Most int // entries

	sync.Mutex        // protects the following
	List       []byte // ring.RegEntry, in memory shared with the card
	Count      int    // of its entries
	Length     uint64 // of their memory, in bytes
	Meta       int    // entries of the list of fields, which follows that of data
}

var access any

// Set makes an Access available. Package verbs calls it when it is initialized.
func Set(a any) { access = a }

// Get returns the Access that verbs has set.
func Get[A any]() A { return access.(A) }
