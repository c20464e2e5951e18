// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"syscall"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The requests and grants of the commands on XRC domains, in the order of commands.go.
type (
	// OpenXRCDRequest requests an XRC domain.
	OpenXRCDRequest struct {
		// File is an open file whose inode identifies the domain for all sessions of the user; nil for a domain of this
		// session.
		File      syscall.Conn
		Create    bool // create the domain if it does not exist (O_CREAT)
		Exclusive bool // fail if it exists (O_EXCL)
	}
	// OpenXRCDGrant is a handle of an XRC domain.
	OpenXRCDGrant struct{ XRCD Handle }
	// CloseXRCDRequest closes a handle of an XRC domain.
	CloseXRCDRequest struct{ XRCD Handle }

	// CreateXRCSRQRequest requests a shared receive queue of type XRC.
	CreateXRCSRQRequest struct {
		PD              Handle // of the memory of its receives, and of the memory that peers address by R_Keys
		XRCD            Handle
		CQ              Handle // for completions of its receives
		Attr            SRQInitAttr
		CompletionToken uint32 // chosen by the program; its receives' completions carry it
		EventID         uint64 // chosen by the program; its events carry it
	}
	// CreateXRCSRQGrant is such a queue.
	CreateXRCSRQGrant struct {
		CreateSRQGrant
		Number wire.SRQN // which peers send to
	}

	// CreateXRCTargetRequest requests a target queue pair, in RESET.
	CreateXRCTargetRequest struct {
		XRCD    Handle
		EventID uint64 // chosen by the program; its events carry it
	}
	// OpenQPRequest requests a handle of a target queue pair of the domain.
	OpenQPRequest struct {
		XRCD    Handle
		Number  wire.QPN
		EventID uint64 // likewise: each handle gets all events
	}
	// OpenQPGrant is a handle of a target queue pair.
	OpenQPGrant struct {
		QP     Handle
		Number wire.QPN
		State  ib.QPState
	}
)
