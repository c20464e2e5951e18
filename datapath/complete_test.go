package datapath

import (
	"slices"
	"testing"
)

// The numbers are those of libibverbs (ibv_wc_status, ibv_wc_opcode, ibv_wc_flags) and of
// rdma_network_type: programs compare them.
func TestNumbersOfCompletions(t *testing.T) {
	got := []int{statusSuccess, statusLocalLength, statusLocalQPOp, statusLocalProtection, statusFlushed,
		opcodeSend, opcodeRecv, flagGRH, flagImm, flagSMAC, flagVLAN, flagNetworkHeader, networkIPv4, networkIPv6}
	want := []int{0, 1, 2, 4, 5, 0, 128, 0x1, 0x2, 0x10, 0x20, 0x40, 2, 3}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// However many completions a burst has, its CQ is published once.
func TestPublishedOnceABurst(t *testing.T) {
	r := newRig(t)
	for i := range uint64(3) {
		r.postRecv(i, piece(0, 100))
		r.link.in = append(r.link.in, datagram(nil))
	}
	r.engine.Do(func() {
		r.engine.receive()
		if n := len(r.engine.dirty); n != 1 {
			t.Errorf("%d queues to publish", n)
		}
	})
	if got := r.completions(); len(got) != 3 {
		t.Errorf("completions %+v", got)
	}
}
