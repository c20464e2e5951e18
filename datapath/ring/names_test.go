package ring

import "testing"

// Each kind of completed request has a name, and a number without one is told as it is.
func TestWCOpcodeNames(t *testing.T) {
	for opcode, want := range map[WCOpcode]string{
		WCSend: "send", WCRDMAWrite: "RDMA write", WCRDMARead: "RDMA read", WCCompSwap: "compare and swap", WCFetchAdd: "fetch and add",
		WCBindMW: "bind memory window", WCLocalInv: "local invalidate", WCRecv: "receive", WCRecvRDMAWithImm: "receive RDMA with immediate",
		7: "operation(7)", 0x82: "operation(130)", 0xff: "operation(255)",
	} {
		if got := opcode.String(); got != want {
			t.Errorf("%d is %q, want %q", uint8(opcode), got, want)
		}
	}
}
