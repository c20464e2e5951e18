// SPDX-License-Identifier: Apache-2.0

package ib

import (
	"fmt"
	"testing"

	"github.com/roced/roced/datapath/wire"
)

// TestRequests checks the services of each operation (IBA table 97), and the opcode of its completion.
func TestRequests(t *testing.T) {
	rows := map[Opcode]string{
		WRRDMAWrite: "RC UC XRC, RDMA write", WRRDMAWriteWithImm: "RC UC XRC, RDMA write", WRSend: "RC UC UD XRC, send", WRSendWithImm: "RC UC UD XRC, send",
		WRRDMARead: "RC XRC, RDMA read", WRAtomicCmpAndSwp: "RC XRC, compare and swap", WRAtomicFetchAndAdd: "RC XRC, fetch and add",
		WRLocalInv: "RC UC XRC, local invalidate", WRBindMW: "RC UC XRC, bind memory window", WRSendWithInv: "RC XRC, send",
		WRRegMR: "RC UC XRC, fast registration", WRRegMRIntegrity: "RC UC XRC, fast registration",
	}
	for value := range 256 {
		o, got := Opcode(value), ""
		for _, s := range []struct {
			name    string
			service wire.Service
		}{{"RC", wire.ServiceRC}, {"UC", wire.ServiceUC}, {"UD", wire.ServiceUD}, {"XRC", wire.ServiceXRC}} {
			if o.On(s.service) {
				got += " " + s.name
			}
		}
		if got != "" {
			got = fmt.Sprintf("%s, %v", got[1:], o.Completes())
		}
		if got != rows[o] {
			t.Errorf("%d (%v): got %q, want %q", value, o, got, rows[o])
		}
		if local := o == WRLocalInv || o == WRBindMW || o == WRRegMR || o == WRRegMRIntegrity; o.Local() != local {
			t.Errorf("%v: got Local %v", o, o.Local())
		}
	}
}
