// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package netdev

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
)

func openTUN(string, []netip.Prefix) (Interface, error) {
	return nil, fmt.Errorf("TUN: %w on this system; set Options.Interface", verbs.ErrUnsupported)
}
