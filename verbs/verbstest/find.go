// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/compat"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var findTests = []rig.Test{
	{Name: "find GIDs and P_Keys", Run: findInTables},
	{Name: "query by mask", Run: queryByMask},
	{Name: "conversions", Run: conversions},
}

// Entries of a table are found; others return ENOENT.
func findInTables(t *testing.T, w *rig.World) {
	c := w.A.Ctx
	for _, own := range w.A.End.Addresses() {
		port, index, err := kernel.FindGID(c, rig.GID(own))
		rig.Check(t, err)
		if entry, err := c.QueryGID(port, index); entry.GID != rig.GID(own) || err != nil {
			t.Errorf("%v is at %d of port %d: %v, %v", own, index, port, entry, err)
		}
	}
	_, _, err := kernel.FindGID(c, rig.GID(netip.MustParseAddr("192.0.2.99")))
	rig.Refused(t, err, unix.ENOENT, "192.0.2.99")
	for pkey, exact := range map[verbs.PKey]bool{0xFFFF: true, 0x7FFF: false} {
		if index, err := kernel.FindPKey(c, 1, pkey); index != 0 || err != nil {
			t.Errorf("find 0x%x: %d, %v", uint16(pkey), index, err)
		}
		if index, err := compat.GetPKeyIndex(c, 1, pkey); exact && (index != 0 || err != nil) || !exact && err == nil {
			t.Errorf("index of 0x%x: %d, %v", uint16(pkey), index, err)
		}
	}
	_, none := kernel.FindPKey(c, 1, 0x8001)
	rig.Refused(t, none, unix.ENOENT, "0x8001")
	_, partial := compat.GetPKeyIndex(c, 1, 0x7FFF)
	rig.Refused(t, partial, unix.ENOENT)
	_, noPort := kernel.FindPKey(c, 2, 0xFFFF)
	rig.Refused(t, noPort, unix.EINVAL, "port 2")
}

// A query by mask returns only the attributes in the mask.
func queryByMask(t *testing.T, w *rig.World) {
	all, init, err := w.A.QP.Query()
	rig.Check(t, err)
	for _, mask := range []verbs.QPAttrMask{0, verbs.QPAttrState, verbs.QPAttrQKey | verbs.QPAttrSQPSN, verbs.QPAttrCap, 1<<32 - 1} {
		got, gotInit, err := compat.QueryQP(w.A.QP, mask)
		rig.Check(t, err)
		var want verbs.QPAttr
		want.Set(&all, mask)
		if mask&verbs.QPAttrCap != 0 {
			want.Cap = all.Cap
		}
		if got != want || gotInit.Cap != init.Cap || gotInit.SendCQ != init.SendCQ {
			t.Errorf("%v: %+v, want %+v", mask, got, want)
		}
	}
	if got, _, _ := compat.QueryQP(w.A.QP, 1<<32-1); got != all {
		t.Errorf("all: %+v, want %+v", got, all)
	}
}

// The conversions equal those of the kernel, including the conversions of port attributes.
func conversions(t *testing.T, w *rig.World) {
	for mtu, want := range map[verbs.MTU]int{0: -1, 1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096, 6: -1, 255: -1} {
		if got := compat.MTUToInt(mtu); got != want {
			t.Errorf("MTU %d is %d bytes, want %d", uint8(mtu), got, want)
		}
	}
	for bytes, want := range map[int]verbs.MTU{
		-1: verbs.MTU256, 0: verbs.MTU256, 511: verbs.MTU256, 512: verbs.MTU512, 1500: verbs.MTU1024, 4095: verbs.MTU2048, 4096: verbs.MTU4096, 1 << 30: verbs.MTU4096,
	} {
		if got := compat.IntToMTU(bytes); got != want {
			t.Errorf("%d bytes are MTU %v, want %v", bytes, got, want)
		}
	}
	for width, want := range map[uint8]int{0: -1, 1: 1, 2: 4, 3: -1, 4: 8, 8: 12, 16: 2, 32: -1} {
		if got := compat.WidthToInt(width); got != want {
			t.Errorf("width %d is %d lanes, want %d", width, got, want)
		}
	}
	port, err := w.A.Ctx.QueryPort(1)
	rig.Check(t, err)
	if compat.MTUToInt(port.ActiveMTU) < 256 || compat.WidthToInt(port.ActiveWidth) < 1 {
		t.Errorf("%+v", port)
	}
}
