// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"
	"math"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var accessTests = []rig.Test{
	{Name: "access flags", Run: accessFlags},
	{Name: "size of an MR", Run: sizeOfMR},
}

// accessRows lists flags with the result of registering a region with them.
var accessRows = []struct {
	name   string
	access verbs.AccessFlags
	want   error
	says   string
}{
	{"none", 0, nil, ""},
	{"local write", verbs.AccessLocalWrite, nil, ""},
	{"zero-based", verbs.AccessLocalWrite | verbs.AccessZeroBased, nil, ""},
	{"relaxed ordering", verbs.AccessLocalWrite | verbs.AccessRelaxedOrdering, nil, ""},
	{"all optional flags", verbs.AccessOptionalRange, nil, ""},
	{"remote read", verbs.AccessLocalWrite | verbs.AccessRemoteRead, nil, ""},
	{"remote write", verbs.AccessLocalWrite | verbs.AccessRemoteWrite, nil, ""},
	{"remote atomic", verbs.AccessLocalWrite | verbs.AccessRemoteAtomic, nil, ""},
	{"memory window", verbs.AccessLocalWrite | verbs.AccessMWBind, nil, ""},
	{"on demand", verbs.AccessLocalWrite | verbs.AccessOnDemand, nil, ""},
	{"huge pages on demand", verbs.AccessHugeTLB | verbs.AccessOnDemand, unix.EOPNOTSUPP, "huge or not"},
	{"huge pages", verbs.AccessHugeTLB, unix.EOPNOTSUPP, "HUGETLB): pages come"},
	{"flush", verbs.AccessFlushGlobal, unix.EOPNOTSUPP, "FLUSH_GLOBAL): there is no RDMA flush"},
	{"flush to storage", verbs.AccessFlushPersistent, unix.EOPNOTSUPP, "no RDMA flush"},
	{"remote write without local write", verbs.AccessRemoteWrite, unix.EINVAL, ""},
	{"remote atomic without local write", verbs.AccessRemoteAtomic | verbs.AccessRemoteRead, unix.EINVAL, ""},
	{"after the known flags", verbs.AccessLocalWrite | 1<<10, unix.EINVAL, ""},
	{"before the optional flags", 1 << 19, unix.EINVAL, ""},
	{"after the optional flags", 1 << 30, unix.EINVAL, ""},
	{"the last bit", 1 << 31, unix.EINVAL, ""},
}

// Supported flags are accepted, optional flags have no effect, flags of flush and huge pages are unsupported, and other
// flags are invalid, both for registering and for re-registering a region.
func accessFlags(t *testing.T, w *rig.World) {
	s := w.A
	old, err := s.PD.AllocMR(1, 0)
	rig.Check(t, err)
	for _, row := range accessRows {
		t.Run(row.name, func(t *testing.T) {
			allocated, err := s.PD.AllocMR(1, row.access)
			rig.Refused(t, err, row.want)
			if row.says != "" {
				rig.Refused(t, err, row.want, row.says)
			}
			if err == nil {
				rig.Check(t, allocated.Close())
			}
			registered, err := s.PD.RegMR(make([]byte, 1), row.access)
			if verbs.KindOf(err) != verbs.ErrUnsupported { // otherwise the memory may be the cause
				rig.Refused(t, err, row.want)
			}
			if err == nil {
				rig.Check(t, registered.Close())
			}
			rig.Refused(t, old.Rereg(&verbs.ReregAttr{Access: row.access}, verbs.ReregChangeAccess), row.want)
		})
	}
}

// A region has at least one byte, and ends below 2^64.
func sizeOfMR(t *testing.T, w *rig.World) {
	s := w.A
	device, err := s.Ctx.QueryDevice()
	rig.Check(t, err)
	for _, row := range []struct {
		length int
		iova   uint64
		access verbs.AccessFlags
	}{
		{-1, 0, 0}, {1<<30 + 1, 0, 0}, {int(device.MaxMRSize) + 1, 0, 0}, {math.MinInt, math.MaxUint64, 0},
		{1, math.MaxUint64, 0}, {4096, math.MaxUint64 - 4095, 0}, {4096, math.MaxUint64 - 100, 0},
		{1, 4096, verbs.AccessZeroBased},
	} {
		t.Run(fmt.Sprintf("%+v", row), func(t *testing.T) {
			_, err := s.PD.AllocMRIOVA(row.length, row.iova, row.access)
			rig.Refused(t, err, unix.EINVAL)
		})
	}
	last, err := s.PD.AllocMRIOVA(4096, math.MaxUint64-4096, 0)
	rig.Check(t, err)
	if got := last.SGE(4095, 1).Addr; got != math.MaxUint64-1 || last.IOVA() != math.MaxUint64-4096 {
		t.Errorf("the last byte is at %#x, the first at %#x", got, last.IOVA())
	}
	rig.Check(t, last.Close())
}
