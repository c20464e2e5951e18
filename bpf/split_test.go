// SPDX-License-Identifier: Apache-2.0

//go:build !vlan

package bpf

// Not with tag vlan: the kernels of the guests cannot split the frame of a test run.

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/roced/roced/internal/needs"
	"golang.org/x/sys/unix"
)

// xdpMD is struct xdp_md, the context of a run: <linux/bpf.h>.
type xdpMD struct {
	Data, DataEnd, DataMeta                     uint32
	IngressIfindex, RxQueueIndex, EgressIfindex uint32
}

// TestEverySplit splits a valid frame at each position into a linear part and fragments, as drivers with header split
// do. The linear part must contain the transport headers, but not the payload.
func TestEverySplit(t *testing.T) {
	h := newHost(t, untagged())
	split := func(frame []byte, linear int) ebpf.RunOptions {
		return ebpf.RunOptions{Data: frame, Context: xdpMD{DataEnd: uint32(linear)}}
	}
	options := split(toOwn4().bytes(), 14)
	if _, err := h.objs.RocedSteer.Run(&options); errors.Is(err, unix.EINVAL) {
		needs.Skip(t, "Linux 6.18, which can split the frame of a test run")
	}
	for _, test := range []struct {
		name           string
		frame          []byte
		ports, headers int // lengths of the linear part from which they can be read
		want           Verdict
	}{
		{"UD over IPv4", toOwn4().bytes(), udp4At + 8, bth4At + 20, Redirected},
		{"UD over IPv6", toOwn6().bytes(), udp6At + 8, udp6At + 8 + 20, Redirected},
		{"connected", with(toOwn4(), func(f *frame) { f.opcode = rcSendOnly }), udp4At + 8, bth4At + 12, Redirected},
		{"padded", with(toOwn4(), func(f *frame) { f.padding = 40 }), udp4At + 8, bth4At + 20, Redirected},
		{"one byte missing", cut(toOwn4().bytes(), 1), udp4At + 8, bth4At + 20, DropTruncated},
	} {
		for linear := 14; linear <= len(test.frame); linear++ {
			want := test.want
			if linear < test.ports {
				want = PassNotRoCE
			} else if linear < test.headers {
				want = DropTruncated
			}
			if got := h.run(t, split(test.frame, linear)); got != want {
				t.Errorf("%s, %d of %d bytes linear: %s, want %s", test.name, linear, len(test.frame), got, want)
			}
		}
	}
}
