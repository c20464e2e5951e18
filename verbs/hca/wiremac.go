//go:build linux

package hca

import "github.com/roced/roced/verbs"

// MAC is the host's hardware address, which the other hosts of the wire see.
func (h *WireHost) MAC() verbs.MAC { return h.host.now().mac }
